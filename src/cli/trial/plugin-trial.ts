import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openPluginMechanism } from '#adapters/auth-mechanisms/plugin/plugin.ts'
import { openPluginFilter } from '#adapters/filters/plugin/plugin.ts'
import { mappingLimits, openMappingFunction } from '#adapters/mappers/javascript-mapping/javascript-mapping.ts'
import { openPluginTarget } from '#adapters/targets/plugin/plugin-target.ts'
import { openJavaScriptTask } from '#adapters/workflow-tasks/javascript-task/javascript-task.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { issuerIdentity } from '#identity/identity.ts'
import { toTexts } from '#identity/mapping/mapped-value.ts'
import type { Subject } from '#identity/subject.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { type TargetConformanceOptions, targetConformance } from '#sdk/conformance/target-conformance.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import type { PluginCode } from '#sdk/plugin/plugin-code.ts'
import type { PluginAttributes, PluginSubject } from '#sdk/plugin/plugin-types.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { RequestMap, WorkflowUser } from '#sdk/workflow/workflow-task.ts'

/** Runs plug-ins without a configuration as the gateway would run them, for their authors' tests. */

interface TrialOptions {
  /** The file with the plug-in's code. */
  readonly module: URL
  /** The argument of `init`. */
  readonly parameters?: Readonly<Record<string, readonly string[]>>
  readonly timeoutMillis?: number
}

interface TrialUser {
  readonly userID: string
  readonly attributes?: Readonly<Record<string, readonly string[]>>
  readonly groups?: readonly string[]
}

interface TrialRequest {
  readonly method?: string
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

export async function tryTask(options: TrialOptions) {
  const task = await openJavaScriptTask(codeOf(options), host)
  return {
    /** The changed user and request, whether the workflow continues, and the audit entries. */
    async run(given: TrialUser, params: Readonly<Record<string, unknown>> = {}) {
      const user: WorkflowUser = { ...userOf(given), keepGroups: false }
      const request: RequestMap = new Map(Object.entries(params))
      const audited: TargetChange[] = []
      const { kind } = await task.run({
        user,
        request,
        run: { id: 'trial', workflow: 'trial', definition: '', subject: 'trial', requester: 'trial', who: {} },
        log: silentLogger,
        effects: { mail: unused, start: unused, grant: unused, beginPassword: noPassword },
        forTarget: () => ({
          workflow: { id: 'trial', name: 'trial' },
          requestor: 'trial',
          params: Object.fromEntries(request),
          idempotencyKey: 'trial',
          log: silentLogger,
          audit: (change) => void audited.push(change),
        }),
      })
      const { userID, attributes, groups } = user
      return {
        goesOn: kind === 'next',
        user: { userID, attributes: { ...attributes.toObject() }, groups },
        request: Object.fromEntries(request),
        audited,
      }
    },
    close: async () => task.close?.(),
  }
}

/** `texts` are those after the module in the expression. */
export async function tryMapper({ module, texts = [] }: { readonly module: URL; readonly texts?: readonly string[] }) {
  const code = { ...codeOf({ module }), ...mappingLimits }
  const mapper = await openMappingFunction({ code, name: 'mapper', globals: { name: 'trial' }, init: [texts] }, host)
  return {
    async map(given: TrialUser, attribute: string): Promise<readonly string[]> {
      const { userID, attributes, groups } = userOf(given)
      const source = { values: (name: string) => attributes.values(name), names: () => attributes.names() }
      return toTexts(await mapper.map({ userID, groups, ...source }, attribute))
    },
    close: async () => mapper.close?.(),
  }
}

export async function tryFilter(options: TrialOptions) {
  const filter = await openPluginFilter({ code: codeOf(options), maxBodyBytes: trialBodyBytes }, host)
  return {
    /** `passedOn`: whether the filter left the response to the next one, which returns 404 here. */
    async handle(given: TrialRequest, caller: TrialUser = { userID: 'trial' }) {
      const request = requestOf(given)
      let passedOn = false
      const exchange = { request, application: 'trial', mount: '', pathInfo: request.path, subject: subjectOf(caller) }
      const { status, headers, body } = await filter.handle(exchange, async () => {
        passedOn = true
        return { status: 404, headers: {} }
      })
      return { passedOn, status, headers: { ...headers }, body: String(body ?? '') }
    },
    close: async () => filter.close?.(),
  }
}

interface TrialOutcome {
  readonly subject?: Pick<PluginSubject, 'dn' | 'uid'> & { readonly attributes: PluginAttributes }
  readonly refused?: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

export async function tryMechanism(options: TrialOptions) {
  const link = {
    uidAttr: 'uid',
    noMatchOU: 'trial',
    objectClass: 'inetOrgPerson',
    lookup: undefined,
    acceptUnverifiedMail: false,
  }
  const config = { code: codeOf(options), link, maxBodyBytes: trialBodyBytes }
  const mechanism = await openPluginMechanism(config, host)
  return {
    async authenticate(given: TrialRequest): Promise<TrialOutcome> {
      const outcome = await mechanism.begin({ request: requestOf(given), subject: undefined, root })
      if (outcome.kind === 'rejected') {
        return { refused: outcome.reason, status: outcome.status ?? 401, headers: { ...outcome.headers } }
      }
      if (outcome.kind !== 'authenticated') throw new Error(`the outcome is "${outcome.kind}"`)
      const { dn, uid, attributes } = outcome.subject
      return { subject: { dn: dn.toString(), uid, attributes: { ...attributes.toObject() } } }
    },
    close: async () => mechanism.close?.(),
  }
}

const root = 'o=Tremolo'
const trialBodyBytes = 1024 * 1024
const unused = (): void => {}
const noPassword = async () => ({ written: unused, refused: async () => {} })

const noDirectory = async (): Promise<never> => {
  throw new GatewayError('NOT_SUPPORTED', 'there is no directory in a trial')
}

const host = {
  name: 'trial',
  log: silentLogger,
  clock: systemClock,
  javaScript: () => undefined,
  directory: { search: noDirectory, page: noDirectory, isMember: noDirectory, bind: noDirectory, entry: noDirectory },
}

function codeOf({ module, parameters = {}, timeoutMillis = 10_000 }: TrialOptions): PluginCode {
  const file = fileURLToPath(module)
  return {
    inline: undefined,
    file,
    includes: [],
    folder: dirname(file),
    timeoutMillis,
    memoryMegabytes: 64,
    config: parameters,
  }
}

const userOf = ({ userID, attributes = {}, groups = [] }: TrialUser) => ({
  userID,
  attributes: Attributes.from(attributes),
  groups: [...groups],
})

function subjectOf(caller: TrialUser): Subject {
  const { userID, attributes } = userOf(caller)
  const dn = Dn.parse(root).child('uid', userID)
  return { dn, identity: issuerIdentity('trial', userID), uid: userID, attributes, level: 20, chain: 'trial' }
}

function requestOf({ method = 'GET', url = '/', headers = {}, body = '' }: TrialRequest): GatewayRequest {
  const address = new URL(url, 'http://localhost')
  return {
    id: 'trial',
    method,
    origin: address.origin,
    host: address.hostname,
    path: address.pathname,
    query: address.searchParams,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    remoteAddress: '127.0.0.1',
    signal: new AbortController().signal,
    async body(limit = trialBodyBytes) {
      const bytes = Buffer.from(body)
      if (bytes.length > limit) throw new GatewayError('BODY_TOO_LARGE', `the body has more than ${limit} bytes`)
      return bytes
    },
    readBody: async (take) => take(Buffer.from(body)),
  }
}

interface PluginConformanceOptions extends TargetConformanceOptions {
  /** The file with the plug-in's code. */
  readonly module: URL
  /** The argument of `init`. */
  readonly parameters?: Readonly<Record<string, readonly string[]>>
  /** Runs before each case, to empty the system of the target. */
  readonly before?: () => Promise<void> | void
  readonly timeoutMillis?: number
}

/** The target conformance suite for a plug-in without a configuration, for its author. */
export function pluginTargetConformance(name: string, options: PluginConformanceOptions): void {
  const { module, parameters = {}, before, timeoutMillis = 10_000, lookups = true, ...suite } = options
  const file = fileURLToPath(module)
  const code = {
    inline: undefined,
    file,
    includes: [],
    folder: dirname(file),
    timeoutMillis,
    memoryMegabytes: 64,
    config: parameters,
  }
  const open = async () => {
    await before?.()
    const target = await openPluginTarget(
      { code, requireAllFunctions: false, lookups, groups: undefined },
      { name, log: silentLogger, clock: systemClock, javaScript: () => undefined },
    )
    return { target, close: async () => target.close?.() }
  }
  targetConformance(name, open, { ...suite, lookups })
}
