import { type Attributes, isDeactivated } from '#identity/attributes.ts'
import { directoryLink } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { shownAttributes } from '#identity/shown-attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import {
  type AuthAttempt,
  type AuthMechanism,
  type AuthOutcome,
  defineAuthMechanism,
} from '#sdk/auth/auth-mechanism.ts'
import { isMailName, unverifiedMail, unverifiedMailWarning } from '#sdk/login/linked-subject.ts'
import { flag, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  nameAttr: text({
    about:
      "The caller's attribute that is the login of the new user. It must have exactly one value, and users must not be able to choose it at an outside issuer: a caller with the login of a user here becomes that user.",
    required: true,
  }),
  workflowName: text({
    about: 'The workflow that creates or updates the user before the login continues.',
    required: true,
    reference: 'workflow',
  }),
  reloadBaseDN: parsed('distinguished name', (written) => Dn.parse(written), {
    about:
      "Where the user is found again in the directory, by `nameAttr`. When absent, the `newRoot` of a [resync](../workflow-tasks/resync.md) in the workflow, or else the chain's root.",
  }),
  gracePeriod: wholeNumber({
    about: 'The workflow does not run if the user was updated within this number of seconds; 0: it always runs.',
    fallback: 0,
  }),
  acceptUnverifiedMail: flag({
    about:
      "Let `nameAttr` be a mail claim, such as `email` or `mail`, although the caller's `email_verified` is not `true`. Set it only where the issuer verifies every address.",
  }),
  lastUpdatedAttributeName: text({
    about:
      'The attribute with the time of the last run, in milliseconds since 1970: of the entry in the directory, or what [auth.LoadLastUpdated](auth.LoadLastUpdated.md) read before.',
    requirement: 'with `gracePeriod`',
  }),
}

type Config = ParsedParameters<typeof parameters>

/** Creates or updates the user that earlier mechanisms established by a workflow, then reads the user again. */
export default defineAuthMechanism({
  className: 'auth.JitProvision',
  aliases: ['com.tremolosecurity.provisioning.auth.JITAuthMech'],
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.gracePeriod > 0 && given.lastUpdatedAttributeName === undefined) {
      issues.error(params.pathOf('lastUpdatedAttributeName'), 'is required where gracePeriod is given')
    }
    if (given.acceptUnverifiedMail && isMailName(given.nameAttr)) {
      issues.warning(params.pathOf('acceptUnverifiedMail'), unverifiedMailWarning)
    }
    return given
  },
  create: (config, host) => new JitProvision(config, host),
})

class JitProvision implements AuthMechanism {
  readonly #config: Config
  readonly #host: AuthHost

  constructor(config: Config, host: AuthHost) {
    this.#config = config
    this.#host = host
  }

  async begin({ subject, request, root }: AuthAttempt): Promise<AuthOutcome> {
    const { nameAttr, workflowName, acceptUnverifiedMail } = this.#config
    if (subject === undefined)
      return rejected(
        'no user is signed in yet, so none can be provisioned; put this mechanism after one that identifies the user',
      )
    const [login, second] = subject.attributes.values(nameAttr)
    if (login === undefined || login === '' || second !== undefined) {
      return rejected(`the caller has not exactly one "${nameAttr}"`)
    }
    const isOfDirectory = subject.link !== undefined && !subject.link.added.has(nameAttr)
    const unverified =
      isOfDirectory || acceptUnverifiedMail || !isMailName(nameAttr)
        ? undefined
        : unverifiedMail([nameAttr], subject.attributes)
    if (unverified !== undefined) return rejected(unverified)
    const before = await this.#find(login, root)
    // A login elsewhere must not restore access that was revoked here.
    if (before !== undefined && isDeactivated(before.attributes)) return switchedOff
    if (!this.#isRecent(before?.attributes, subject.attributes)) {
      const attributes = shownAttributes(subject)
      try {
        await this.#host.workflows.run({
          head: {
            workflow: workflowName,
            requester: login,
            who: { requester: subject.identity },
            reason: 'Login',
            requestId: request.id,
          },
          user: { userID: login, attributes, groups: [] },
          keepGroups: true,
          params: {},
        })
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE') throw error
        this.#host.log.warn('login rejected: the provisioning workflow did not create the user', {
          err: error,
          workflow: workflowName,
        })
        return rejected(`the workflow "${workflowName}" failed`)
      }
    }
    const entry = await this.#find(login, root)
    if (entry === undefined) return { kind: 'authenticated', subject }
    if (isDeactivated(entry.attributes)) return switchedOff
    const link = directoryLink(entry, { filter: this.#filter(login), uidAttr: undefined })
    const { dn, identity } = entry
    return {
      kind: 'authenticated',
      subject: { dn, identity, uid: login, attributes: shownAttributes(entry), otherNames: [subject.dn], link },
    }
  }

  /** By the entry, or by what auth.LoadLastUpdated read. A claim doesn't count: the caller may have chosen it. */
  #isRecent(entry: Attributes | undefined, loaded: Attributes): boolean {
    const { gracePeriod, lastUpdatedAttributeName: name = '' } = this.#config
    const updated = entry?.first(name) ?? (loaded.isClaim(name) ? undefined : loaded.first(name))
    if (gracePeriod === 0 || updated === undefined || !/^\d{1,15}$/.test(updated)) return false
    const age = this.#host.clock().getTime() - Number(updated)
    return age >= 0 && age < gracePeriod * 1000
  }

  /** Undefined if no user matches, or more than one. */
  async #find(login: string, root: string) {
    const { reloadBaseDN, workflowName } = this.#config
    const base = reloadBaseDN ?? this.#host.reloadRoot?.(workflowName) ?? Dn.parse(root)
    const search = { base, scope: 'sub', filter: this.#filter(login), limit: 2 } as const
    const [entry, second] = await this.#host.directory.search(search)
    return second === undefined ? entry : undefined
  }

  #filter(login: string): Filter {
    return { kind: 'equal', attribute: this.#config.nameAttr, value: login }
  }
}

const rejected = (reason: string): AuthOutcome => ({ kind: 'rejected', reason, status: 403 })

const switchedOff = rejected('the person is switched off in the directory')
