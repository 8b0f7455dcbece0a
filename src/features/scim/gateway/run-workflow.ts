import { setTimeout as wait } from 'node:timers/promises'
import type { Uniqueness } from '#features/scim/types/unique-values.ts'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import type { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'
import type { PreviewStep } from '#sdk/contract/preview.ts'
import type { AttributeWrite } from '#sdk/flow/flow.ts'
import { shownPreview } from '#sdk/workflow/preview.ts'
import type { ReadVersion } from '#sdk/workflow/workflow.ts'
import { UnfinishedRun } from '#workflows/record/run-requests.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import type { ClientRates } from './client-rates.ts'
import type { EffectCheck } from './dry-run.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { Managers } from './managers.ts'
import type { GroupMapping, UserMapping } from './resource-mapping.ts'
import { notSupported, type ScimCall } from './scim-call.ts'
import type { GatewayStorage } from './stored-schema.ts'
import type { Settled, UnfinishedChanges } from './unfinished-changes.ts'
import type { VisibleLookups } from './visible-lookups.ts'

/** What the endpoints of one gateway share. */
export interface GatewayParts {
  readonly config: GatewayConfig
  readonly lookups: VisibleLookups
  readonly storage: GatewayStorage
  readonly users: UserMapping
  readonly groups: GroupMapping
  readonly managers: Managers
  readonly runs: RunService
  readonly unfinished: UnfinishedChanges
  /** Undefined for users: no attribute of theirs is unique but the login. */
  readonly uniqueness: Uniqueness | undefined
  /** The paths of all types, by their names. */
  readonly endpoints: ReadonlyMap<string, string>
  readonly queue: KeyedQueue
  /** Undefined if requests are not limited. */
  readonly rates: ClientRates | undefined
  readonly log: Logger
}

interface WorkflowRequest {
  readonly name: string
  readonly user: User
  readonly params?: Readonly<Record<string, string>>
  readonly password?: string
  /** Attributes to remove from the user. */
  readonly cleared?: readonly string[]
  /** The new login of the user. */
  readonly newUserID?: string | undefined
  /** The run fails with VERSION_MISMATCH unless the target still has this version. */
  readonly basedOn?: ReadVersion | undefined
  /** The subject of the run, if it is not the user. */
  readonly subject?: string
  /** What the request changes, as it was settled before. */
  readonly settled?: Settled | undefined
  /** What the request checks after the run, for a dry run. */
  readonly check?: EffectCheck
}

/** The workflow started and waits, usually for an approval, so the change cannot be shown yet. */
export class ChangePending extends Error {
  readonly run: string

  constructor(run: string) {
    super(`run ${run} waits`)
    this.name = 'ChangePending'
    this.run = run
  }
}

/** Ends a dry run where the change would be made, and would not have to wait. */
export class ChangePreviewed extends ChangePending {
  constructor() {
    super('')
    this.name = 'ChangePreviewed'
  }
}

/** Lets a dry run continue after a run that would not have to wait. */
export async function orPreviewed(change: Promise<unknown>): Promise<void> {
  try {
    await change
  } catch (error) {
    if (!(error instanceof ChangePreviewed)) throw error
  }
}

/**
 * Runs a workflow to its end, and returns the attributes that it changed. Throws ChangePending for a run that has to wait,
 * and in a dry run, which starts none.
 * SCIM never replaces the list of a user's groups, so the workflow keeps them unless its own tasks change them.
 */
export async function runWorkflow(
  parts: GatewayParts,
  { exchange, notes, dryRun }: ScimCall,
  request: WorkflowRequest,
): Promise<readonly AttributeWrite[]> {
  const { password, cleared = [], newUserID, basedOn, subject, settled, check } = request
  const unset = settled?.replaces.find(({ setsPassword }) => setsPassword === true)
  if (unset !== undefined && password === undefined && request.name === parts.config.workflows.user) {
    throw new UnfinishedRun(unset.id, { state: 'password', isRetried: false })
  }
  const call = {
    head: {
      workflow: request.name,
      subject,
      requester: exchange.subject.uid,
      who: { requester: exchange.subject.identity },
      requestId: exchange.request.id,
    },
    user: request.user,
    params: request.params ?? {},
    keepGroups: true,
    ...(exchange.session === undefined ? {} : { session: exchange.session.id }),
    ...(password === undefined ? {} : { password }),
    ...withCleared(cleared, request.user, settled),
    ...(newUserID === undefined ? {} : { newUserID }),
    ...(basedOn === undefined ? {} : { basedOn }),
    ...(settled === undefined ? {} : { resource: settled.resource, replaces: settled.replaces }),
  }
  if (dryRun !== undefined) {
    const run = { workflow: request.name, subject: subject ?? request.user.userID }
    const { config } = parts
    const preview = async () => shownPreview(await parts.runs.preview(call))
    const shown = (step: PreviewStep) => (config.dryRun === 'all' ? step : readablePart(config, step))
    const waits = await dryRun
      .add(run, { preview, check, shown })
      .catch((error: unknown) => refuseValue(parts, exchange.request.id, error))
    throw waits ? new ChangePending('') : new ChangePreviewed()
  }
  let noted: string | undefined
  // Noted at the start, so that the journal also names a run that fails.
  const running = parts.runs.run(call, (id) => {
    noted = id
    notes.workflows.push(id)
  })
  const result = await running.catch((error: unknown) => refuseValue(parts, exchange.request.id, error))
  if (noted === undefined) notes.workflows.push(result.id)
  if (result.status !== 'completed') throw new ChangePending(result.id)
  return result.written ?? []
}

/** The part of a step that the client can also read by the gateway, as it is or after the change. */
function readablePart({ lookup, users, groups, toScim }: GatewayConfig, step: PreviewStep): PreviewStep | undefined {
  if (step.kind === 'mail' || step.kind === 'object') return undefined
  if (!('target' in step)) return step
  if (lookup.kind !== 'target' || step.target !== lookup.name) return undefined
  if (step.kind === 'end') return step
  const { mapping } = step.kind === 'user' ? users : groups
  const paths = mapping.shown.filter(
    ({ attribute, sub }) => attribute.returned !== 'never' && sub?.returned !== 'never',
  )
  const names = [
    ...paths.flatMap((path) => mapping.namesAt(path)),
    ...(step.kind === 'user'
      ? [...toScim.reads.map(({ attribute }) => attribute), users.loginAttribute, users.idAttribute, 'password']
      : [...groups.filterNames.values(), groups.displayAttribute, groups.memberAttribute, 'members']),
  ]
  const readable = new Set(names.flatMap((name) => name?.toLowerCase() ?? []))
  const attributes = step.attributes.filter(({ name }) => readable.has(name.toLowerCase()))
  return attributes.length === step.attributes.length ? step : { ...step, attributes }
}

/** What this request clears, and what an earlier one that it replaces has written and this one does not set. */
function withCleared(
  own: readonly string[],
  { attributes }: User,
  settled: Settled | undefined,
): { cleared?: readonly string[] } {
  const earlier =
    settled?.replaces.flatMap(({ written = [] }) => written).filter((name) => attributes.values(name).length === 0) ??
    []
  const cleared = [...new Set([...own, ...earlier])]
  return cleared.length === 0 ? {} : { cleared }
}

export interface GroupRun {
  readonly name: string | undefined
  readonly attributes?: Attributes
  /** Attributes to remove from the group. */
  readonly cleared?: readonly string[]
  readonly params: Readonly<Record<string, string>> & { readonly groupname: string }
  readonly settled?: Settled
  readonly check?: EffectCheck
}

/** The workflow's user is the caller, with the attributes of the group. */
export async function runGroupWorkflow(
  parts: GatewayParts,
  call: ScimCall,
  run: GroupRun,
): Promise<readonly AttributeWrite[]> {
  const { name, attributes = new Attributes(), cleared = [], params, settled, check } = run
  if (name === undefined) throw notSupported('This gateway has no workflow for this change of a group.')
  const user = { userID: call.exchange.subject.uid, attributes, groups: [] }
  return await runWorkflow(parts, call, {
    name,
    user,
    cleared,
    params,
    subject: groupKey(params.groupname),
    settled,
    ...(check === undefined ? {} : { check }),
  })
}

/** Changes of one user or group run one after the other, in the queue of its key. */
export const userKey = (id: string): string => `user ${id.toLowerCase()}`
export const groupKey = (id: string): string => `group ${id.toLowerCase()}`

/** Returns false for a run that has to wait, and notes it, so that the call continues and answers 202 at its end. */
export async function orPending(call: Pick<ScimCall, 'notes' | 'dryRun'>, change: Promise<unknown>): Promise<boolean> {
  try {
    await change
    return true
  } catch (error) {
    if (!(error instanceof ChangePending)) throw error
    if (call.dryRun === undefined) call.notes.pending ??= error.run
    return false
  }
}

/** A value that a target cannot store came from the client, so it becomes an invalidValue in the client's terms. */
function refuseValue({ config, log }: GatewayParts, requestId: string, error: unknown): never {
  const isValue =
    error instanceof GatewayError &&
    error.code === 'BAD_REQUEST' &&
    (error.keyword === undefined || error.keyword === 'invalidValue')
  if (!isValue) throw error
  log.info('a target refused a value', { requestId, err: error })
  throw scimError('invalidValue', textForClients(error, config.clientNames), { cause: error })
}

/**
 * Targets name their own attributes; clients know the names of SCIM. A text without an attribute names none of ours: not
 * even the words of a server behind do, which knows only the names of its own schema.
 */
function textForClients(error: GatewayError, names: ReadonlyMap<string, string>): string {
  if (error.attribute === undefined) return error.publicText
  const known = names.get(error.attribute.toLowerCase())
  if (known !== undefined) return error.textNaming(known)
  const text = error.textNaming('an attribute of the account')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Of requests that change a resource at the same time, one gets through at each attempt. */
const maxAttempts = 10
const maxPauseMillis = 50

/**
 * Repeats the work while other requests change the resource between the read and the write. If the client sent a
 * version, the mismatch (412) is thrown at once. Throws TARGET_UNREACHABLE with Retry-After after several attempts.
 */
export async function retryWhileChanged<T>(
  { ifMatch, ifNoneMatch }: Pick<ScimCall, 'ifMatch' | 'ifNoneMatch'>,
  work: () => Promise<T>,
): Promise<T> {
  const hasVersion = (ifMatch !== undefined && ifMatch.trim() !== '*') || ifNoneMatch !== undefined
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (hasVersion || !(error instanceof GatewayError) || error.code !== 'VERSION_MISMATCH') throw error
      if (attempt >= maxAttempts) {
        throw new GatewayError('TARGET_UNREACHABLE', `the resource changed during each of ${attempt} attempts`, {
          cause: error,
          publicText: 'Other requests are changing the resource. Try again.',
          retryAfter: 1,
        })
      }
      await wait(Math.random() * maxPauseMillis * attempt)
    }
  }
}

/**
 * Runs work of several steps, which calls `done` after each. If it fails part way, the error and the log say how many
 * steps were done; the error keeps its code.
 */
export async function reportProgress(
  { log }: GatewayParts,
  { exchange, ifMatch, dryRun }: ScimCall,
  group: string,
  wanted: number,
  work: (done: () => void) => Promise<void>,
): Promise<void> {
  if (dryRun !== undefined) return await work(() => {})
  let done = 0
  try {
    await work(() => void done++)
  } catch (thrown) {
    if (thrown instanceof ChangePending) throw thrown
    const error = asGatewayError(thrown)
    if (wanted < 2) throw error
    // The steps that were done gave the group another version.
    const remedy = `Send the same request again${ifMatch === undefined ? '' : ', without If-Match,'} to make the others.`
    log.error('a change of a group stopped part way', { group, done, wanted, requestId: exchange.request.id })
    throw new GatewayError(error.code, `${done} of ${wanted} changes were made: ${error.message}`, {
      cause: thrown,
      publicText: `${error.publicText} ${done} of ${wanted} changes were made. ${remedy}`,
      headers: error.headers,
      retryAfter: error.retryAfter,
      keyword: error.keyword,
    })
  }
}
