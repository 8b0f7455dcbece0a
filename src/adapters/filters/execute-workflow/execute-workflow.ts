import { hash } from 'node:crypto'
import { shownAttributes } from '#identity/shown-attributes.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SessionHandle } from '#sdk/auth/session.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import { isMailName, unverifiedMail } from '#sdk/login/linked-subject.ts'
import { findLogin, isOwnLogin } from '#sdk/login/own-login.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Runs a workflow for the caller, once in a session, before the filters after it. If the run fails, they don't run. */
export default defineFilter({
  className: 'filters.ExecuteWorkflow',
  aliases: ['com.tremolosecurity.proxy.filters.ExecuteWorkflow'],
  ...withParameters({
    workflowName: text({
      about: 'The workflow that runs for the caller, with the attributes of the caller.',
      required: true,
      reference: 'workflow',
    }),
    uidAttributeName: text({
      about:
        "The caller's attribute that is the login of the user of the run. It must have exactly one value, which no other user has as a login.",
      required: true,
    }),
  }),
  answers: false,
  summarize: ({ workflowName }) => [{ label: 'workflow', value: workflowName }],
  create: ({ workflowName, uidAttributeName }, host) => {
    const slot = `filters.ExecuteWorkflow:${hash('sha256', workflowName, 'hex').slice(0, 32)}`
    const run = async ({ request, subject }: Exchange): Promise<void> => {
      const login = await ownLogin(subject, uidAttributeName, host)
      const ofLogins = host.loginAttributes(workflowName)
      await host.workflows.run({
        head: {
          workflow: workflowName,
          requester: subject.uid,
          who: { requester: subject.identity, subject: subject.identity },
          requestId: request.id,
        },
        user: { userID: login, attributes: shownAttributes(subject), groups: [] },
        bound: { attributes: ofLogins === 'any' ? 'any' : [...ofLogins] },
        keepGroups: true,
        params: {},
      })
    }
    const runOnce = async (exchange: Exchange, session: SessionHandle): Promise<void> => {
      if ((await session.read(slot)) === true) return
      await run(exchange)
      await session.write(slot, true)
    }
    /** By session: a page sends several requests at once, which wait for the same run. */
    const underWay = new Map<string, Promise<void>>()
    return {
      async handle(exchange, next) {
        const { session } = exchange
        if (session === undefined) await run(exchange)
        else {
          const done = underWay.get(session.id) ?? runOnce(exchange, session).finally(() => underWay.delete(session.id))
          underWay.set(session.id, done)
          await done
        }
        return next()
      },
    }
  },
})

/** The login is the caller's own: an outside issuer may give anyone the login of a user here. */
async function ownLogin(
  { identity, uid, attributes, link, level }: Subject,
  attribute: string,
  { directory }: Pick<FilterHost, 'directory'>,
): Promise<string> {
  const refuse = (reason: string): GatewayError =>
    new GatewayError('ACCESS_DENIED', `filters.ExecuteWorkflow: ${reason}`)
  if (level === 0) throw refuse('the caller is not logged in')
  const [login, second] = attributes.values(attribute)
  if (login === undefined || login === '' || second !== undefined) {
    throw refuse(`the caller has not exactly one "${attribute}"`)
  }
  const isOfDirectory = link !== undefined && !link.added.has(attribute)
  const unverified = isOfDirectory || !isMailName(attribute) ? undefined : unverifiedMail([attribute], attributes)
  if (unverified !== undefined) throw refuse(unverified)
  if (!isOwnLogin(await findLogin(login, directory, attribute), login, { identity, login: uid })) {
    throw refuse(`the "${attribute}" of the caller is the login of another user`)
  }
  return login
}
