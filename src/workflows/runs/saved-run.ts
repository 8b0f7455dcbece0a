import { type ZodType, z } from 'zod'
import { Attributes, isSecretAttribute } from '#identity/attributes.ts'
import { storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey, isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { ReadVersion } from '#sdk/workflow/workflow.ts'
import type { TaskSignal, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import type { AppointedApprover } from '#workflows/record/approval.ts'
import type { Incident, StoredRun } from '#workflows/record/run.ts'
import { type PlannedChange, plannedToJson, savedChanges } from '#workflows/steps/planned-changes.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import { taskOf } from '#workflows/steps/walk.ts'
import type { NewRun, StoredState } from '#workflows/store/run-commit.ts'

/** The version of the stored form; others are rejected. */
const format = 1
/** The maximum number of characters of JSON. */
const maxSize = 1_000_000

/** A run between two steps. Secrets, such as passwords and attributes with secret names, are separate. */
export interface SavedRun {
  readonly data: JsonObject
  /** Stored encrypted; absent if nothing is secret. */
  readonly secret?: JsonObject | undefined
}

const text = z.string()
const texts = z.array(text)
const count = z.int().nonnegative()
const time = z.number().transform((millis) => new Date(millis))
/** Tuples, since the names of attributes and parameters may be those of JavaScript's own properties. */
const attributePairs = z.array(z.tuple([text, texts]))
const requestPairs = z.array(z.tuple([text, z.unknown()]))

const savedUser = z.object({
  userID: text,
  attributes: attributePairs,
  groups: texts,
  keepGroups: z.boolean(),
  groupIds: texts.exactOptional(),
  id: text.exactOptional(),
  version: text.exactOptional(),
  created: time.exactOptional(),
  modified: time.exactOptional(),
  cleared: texts.exactOptional(),
  groupChanges: z.object({ add: texts, remove: texts }).exactOptional(),
  timedGroups: z
    .array(
      z.object({
        name: text,
        expiry: z.union([z.object({ at: time }), z.object({ after: z.object({ months: count, millis: count }) })]),
      }),
    )
    .exactOptional(),
  requestReason: text.exactOptional(),
  newUserID: text.exactOptional(),
  passwordTargets: texts.exactOptional(),
  /** The index of its map in `versions`: users that share one still share it after storing. */
  basedOn: count.exactOptional(),
})

const savedSecret = z.object({ attributes: attributePairs, password: text.exactOptional() })

const savedSignal = z.union([
  z.object({ kind: z.literal('time') }),
  z.object({
    kind: z.literal('approval'),
    approval: text,
    approved: z.boolean(),
    by: text.exactOptional(),
    onBehalfOf: text.exactOptional(),
    comment: text.exactOptional(),
  }),
])

const savedNewAccount = z.object({
  unique: z.array(z.object({ attribute: text, value: text })),
  created: z.array(z.object({ target: text, userID: text, id: text.exactOptional() })),
  refusal: z.object({ recipient: text, subject: text, text, notifier: text.exactOptional() }).exactOptional(),
})

const savedRef = z.object({ login: text, identity: text.transform(storedIdentity) })

const savedRun = z.object({
  user: savedUser,
  versions: z.array(
    z.array(
      z.object({
        target: text,
        version: text,
        userID: text.exactOptional(),
        group: z.object({ name: text, id: text }).exactOptional(),
      }),
    ),
  ),
  request: requestPairs,
  frames: z.array(z.object({ workflow: text, hash: text, place: text, next: count, user: savedUser.exactOptional() })),
  pins: z.array(z.tuple([text, text])),
  steps: count,
  depth: count.exactOptional(),
  session: text.exactOptional(),
  trace: text.exactOptional(),
  signal: savedSignal.exactOptional(),
  approval: text.exactOptional(),
  end: z.literal('denied').exactOptional(),
  plannedChanges: savedChanges.exactOptional(),
  bound: z.object({ attributes: z.union([z.literal('any'), texts]) }).exactOptional(),
  newAccount: savedNewAccount.exactOptional(),
  appointed: z.object({ approver: savedRef, by: savedRef }).exactOptional(),
})

/** Throws WORKFLOW_FAILED for a run that can't be stored, or is too large. */
export function saveRun(state: RunProgress): SavedRun {
  const maps: VersionMaps = []
  const secrets: Record<string, JsonValue> = {}
  const save = (user: WorkflowUser, name: string): unknown => {
    const { plain, secret } = saveUser(user, maps)
    if (secret !== undefined) secrets[name] = secret
    return plain
  }
  const user = save(state.user, 'user')
  const frames = state.frames.map(({ user: copy, ...frame }, i) => ({
    ...frame,
    user: copy && save(copy, `frame${i}`),
  }))
  const request = Array.from(state.request, ([key, value]): [string, JsonValue] | undefined =>
    value === undefined ? undefined : [key, toJson(value, `request parameter "${key}"`)],
  ).filter((pair) => pair !== undefined)
  const hidden = request.filter(([key]) => isSecretAttribute(key))
  if (hidden.length > 0) secrets['request'] = hidden
  const { pins, steps, depth, session, trace, signal, approval, end, plannedChanges, bound, newAccount } = state
  const { appointed } = state
  const data = toJson(
    {
      format,
      user,
      versions: maps.map((map) => Array.from(map.values(), versionToJson)),
      request: request.filter(([key]) => !isSecretAttribute(key)),
      frames,
      pins: [...pins],
      steps,
      depth,
      session,
      trace,
      signal,
      approval,
      end,
      plannedChanges: plannedChanges && plannedToJson(plannedChanges),
      bound,
      newAccount,
      appointed,
    },
    'the run',
  ) as JsonObject
  return Object.keys(secrets).length === 0 ? { data } : { data, secret: secrets }
}

/** To find out which of these changes were made, and make the others. */
export const withPlannedChanges = (saved: SavedRun, plannedChanges: readonly PlannedChange[]): SavedRun => {
  const { data, ...secret } = withoutVersions(saved)
  return { ...secret, data: { ...data, plannedChanges: plannedToJson(plannedChanges) } }
}

/** What an attempt has changed, or may have, has a new version, so versions read before it no longer bind. */
export const withoutVersions = (saved: SavedRun): SavedRun => {
  const versions = saved.data['versions']
  const empty = Array.isArray(versions) ? versions.map(() => []) : []
  return { ...saved, data: { ...saved.data, versions: empty } }
}

/** Throws WORKFLOW_FAILED for a run that is too large to be stored. */
export function checkSize({ data, secret }: SavedRun): void {
  const size = JSON.stringify(data).length + (secret === undefined ? 0 : JSON.stringify(secret).length)
  if (size <= maxSize) return
  throw new GatewayError('WORKFLOW_FAILED', `the run takes ${size} characters, and at most ${maxSize} are stored`)
}

/** The run as it was saved. Throws WORKFLOW_FAILED for anything that `saveRun` did not write. */
export function restoreRun(head: RunHead, { data, secret = {} }: SavedRun): RunProgress {
  if (data['format'] !== format) throw broken('its form is another')
  const { user, versions, request, frames, pins, ...rest } = readSaved(savedRun, data, 'run')
  const maps = versions.map((read) => new Map(read.map((one): [string, ReadVersion] => [one.target, one])))
  return {
    head,
    ...rest,
    user: restoreUser(user, secret['user'], maps),
    request: new Map([...request, ...readSaved(requestPairs, secret['request'] ?? [], 'secret.request')]),
    frames: frames.map(({ user: copy, ...frame }, i) => ({
      ...frame,
      ...(copy && { user: restoreUser(copy, secret[`frame${i}`], maps) }),
    })),
    pins: new Map(pins),
  }
}

/** The hashes of the definitions that the run is pinned to, by workflow; none if the run has no saved state. */
export const pinnedDefinitions = (data: JsonObject): Readonly<Record<string, string>> =>
  Object.fromEntries(savedRun.shape.pins.safeParse(data['pins']).data ?? [])

/** Where a stored run is, and the definitions that it is pinned to. Throws WORKFLOW_FAILED if it has no saved state. */
export function placeOf(data: JsonObject): Pick<RunProgress, 'frames' | 'pins'> {
  const { frames, pins } = readSaved(savedPlace, data, 'run')
  return { frames, pins: new Map(pins) }
}

const savedPlace = z.object({
  frames: z.array(z.object({ workflow: text, hash: text, place: text, next: count })),
  pins: savedRun.shape.pins,
})

/** Moves past the next task, even if it waited. Undefined if no task is left. */
export function skipTask(data: JsonObject): JsonObject | undefined {
  const { frames, steps } = readSaved(savedPosition, data, 'run')
  const last = frames.at(-1)
  if (last === undefined) return undefined
  const { signal: _, plannedChanges: __, attempts: ___, ...others } = data
  return toJson(
    { ...others, steps: steps + 1, frames: [...frames.slice(0, -1), { ...last, next: last.next + 1 }] },
    'the run',
  ) as JsonObject
}

/** With the approver of the next task, or without one. */
export function withAppointed(data: JsonObject, appointed: AppointedApprover | undefined): JsonObject {
  const { appointed: _, ...others } = data
  return appointed === undefined ? others : { ...others, appointed: toJson(appointed, 'the approver') }
}

const savedPosition = z.object({ steps: count, frames: z.array(z.looseObject({ next: count })) })

/** Whether the run may only create accounts, by its stored form. */
export const newAccountIn = ({ newAccount }: JsonObject): Pick<RunProgress, 'newAccount'> =>
  newAccount === undefined ? {} : { newAccount: readSaved(savedNewAccount, newAccount, 'newAccount') }

/** Undefined for a value that isn't a signal. */
export const signalFromJson = (value: JsonValue | undefined): TaskSignal | undefined =>
  savedSignal.safeParse(value).data

/** Versions of the users of one run. Several users may share one map, and do so again after storing. */
type VersionMaps = Map<string, ReadVersion>[]

const versionToJson = ({ target, version, userID, group }: ReadVersion) => ({
  target,
  version,
  userID,
  group: group && { name: group.name, id: group.id },
})

/** A user in two parts; the secret one, absent if nothing is secret, must be encrypted. */
function saveUser(user: WorkflowUser, maps: VersionMaps): { readonly plain: unknown; readonly secret?: JsonObject } {
  const { userID, keepGroups, groups, groupIds, id, version, created, modified, cleared, groupChanges } = user
  const { timedGroups, requestReason, newUserID, basedOn, password, passwordTargets } = user
  const attributes = Array.from(user.attributes, ([name, values]): [string, string[]] => [name, [...values]])
  const hidden = attributes.filter(([name]) => isSecretAttribute(name))
  const plain = {
    userID,
    attributes: attributes.filter(([name]) => !isSecretAttribute(name)),
    groups,
    keepGroups,
    groupIds,
    id,
    version,
    created: created?.getTime(),
    modified: modified?.getTime(),
    cleared,
    groupChanges: groupChanges && { add: groupChanges.add, remove: groupChanges.remove },
    timedGroups: timedGroups?.map(({ name, expiry }) => ({
      name,
      expiry: 'at' in expiry ? { at: expiry.at.getTime() } : expiry,
    })),
    requestReason,
    newUserID,
    passwordTargets,
    basedOn: basedOn && numberOf(basedOn, maps),
  }
  if (hidden.length === 0 && password === undefined) return { plain }
  return { plain, secret: { attributes: hidden, ...(password === undefined ? {} : { password }) } }
}

function numberOf(map: Map<string, ReadVersion>, maps: VersionMaps): number {
  const known = maps.indexOf(map)
  return known >= 0 ? known : maps.push(map) - 1
}

/** Secret attributes come after the others. Throws WORKFLOW_FAILED for invalid data. */
function restoreUser(saved: z.infer<typeof savedUser>, secret: JsonValue | undefined, maps: VersionMaps): WorkflowUser {
  const { attributes, basedOn, ...user } = saved
  const hidden = secret === undefined ? { attributes: [] } : readSaved(savedSecret, secret, 'secret')
  const restored: WorkflowUser = { ...user, attributes: new Attributes() }
  for (const [name, values] of [...attributes, ...hidden.attributes]) restored.attributes.add(name, values)
  if ('password' in hidden) restored.password = hidden.password
  if (basedOn === undefined) return restored
  const map = maps[basedOn]
  if (map === undefined) throw broken('user.basedOn')
  return { ...restored, basedOn: map }
}

const maxDepth = 32

/**
 * The value as JSON, copied. Throws WORKFLOW_FAILED for anything that JSON can't represent, and for too deep
 * nesting.
 */
function toJson(value: unknown, what: string, depth = 0): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (depth < maxDepth) {
    if (Array.isArray(value)) return value.map((item) => toJson(item, what, depth + 1))
    if (isPlain(value)) {
      const object: Record<string, JsonValue> = {}
      for (const [name, item] of Object.entries(value)) {
        if (item === undefined) continue
        if (isForbiddenKey(name)) throw unstorable(what)
        object[name] = toJson(item, what, depth + 1)
      }
      return object
    }
  }
  throw unstorable(what)
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

const unstorable = (what: string): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `${what} holds what cannot be stored, so that the run cannot wait`)

/** Reads stored data. Throws WORKFLOW_FAILED with the place of the first problem for anything else. */
export function readSaved<T>(schema: ZodType<T>, value: unknown, what: string): T {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw broken([what, ...(read.error.issues[0]?.path ?? [])].join('.'))
}

const broken = (what: string): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `the stored run cannot be read: ${what}`)

/** Encrypts a secret again only if it has changed. */
export class RunSealer {
  readonly #box: SecretBox
  readonly #run: string
  #last: { readonly text: string; readonly sealed: string } | undefined

  constructor(box: SecretBox, run: string) {
    this.#box = box
    this.#run = run
  }

  /** Throws WORKFLOW_FAILED if the run is too large to be stored. */
  async form(saved: SavedRun): Promise<StoredState> {
    checkSize(saved)
    const { data, secret } = saved
    if (secret === undefined) return { data }
    const text = JSON.stringify(secret)
    if (this.#last?.text !== text) this.#last = { text, sealed: await this.#box.seal(secret, this.#run) }
    return { data, secret: this.#last.sealed }
  }

  async open(sealed: string | undefined): Promise<JsonObject | undefined> {
    if (sealed === undefined) return undefined
    const secret = await this.#box.open(sealed, this.#run)
    this.#last = { text: JSON.stringify(secret), sealed }
    return secret
  }
}

/** The run in its current state. Throws WORKFLOW_FAILED if it can't be stored. */
export async function newRunOf(state: RunProgress, box: SecretBox): Promise<NewRun> {
  const { head } = state
  return { head, ...(await new RunSealer(box, head.id).form(saveRun(state))) }
}

/** A stored run, without the result of its wait. Throws WORKFLOW_FAILED for one that cannot be read. */
export async function restoreStoredRun({ head, data, secret }: StoredRun, sealer: RunSealer): Promise<RunProgress> {
  return restoreRun(head, { data, secret: await sealer.open(secret) })
}

/**
 * The stored form of a run while it is executed within its call: only its planned changes, since no worker
 * continues it if the call is lost.
 */
export const lostCallForm = (
  state: RunProgress,
  plannedChanges: readonly PlannedChange[],
  incident?: Incident,
): JsonObject => ({
  withinCall: true,
  task: taskOf(state),
  frames: [],
  steps: state.steps,
  plannedChanges: plannedToJson(plannedChanges),
  ...(incident === undefined ? {} : { incident: { ...incident } }),
})

/** The stored form of a run that ended within its call; the caller may read its response by the key. */
export const endedCallForm: JsonObject = { withinCall: true }

/** It is, or was, executed within its call. */
export const isWithinCall = (data: JsonObject): boolean => data['withinCall'] === true

/** Its call was lost, and it can't be continued, since only its planned changes are stored. */
export const isLostCall = (data: JsonObject): boolean => isWithinCall(data) && data['user'] === undefined

const processDied = { code: 'CALL_LOST', message: 'the process died while it executed the run within its call' }

interface LostCall {
  readonly task: string
  readonly plannedChanges: PlannedChange[]
  /** Why the call ended. */
  readonly incident: Incident
}

/** Throws WORKFLOW_FAILED for anything that `lostCallForm` did not write. */
export function readLostCall({ task, plannedChanges, incident }: JsonObject): LostCall {
  const at = typeof task === 'string' ? task : 'unknown'
  const { code, message } = isJsonObject(incident) ? incident : {}
  const isKnown = typeof code === 'string' && typeof message === 'string'
  return {
    task: at,
    incident: { task: at, ...(isKnown ? { code, message } : processDied) },
    plannedChanges: readSaved(savedChanges, plannedChanges ?? [], 'planned changes'),
  }
}

/** What still has to be found out. */
export const remainingForm = (data: JsonObject, plannedChanges: readonly PlannedChange[]): JsonObject => ({
  ...data,
  plannedChanges: plannedToJson(plannedChanges),
})
