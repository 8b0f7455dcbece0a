import { intentsFromJson, intentsToJson } from '#engine/workflow/intents.ts'
import type { Frame, RunProgress } from '#engine/workflow/run-progress.ts'
import { asTexts, broken, SavedObject, toJson } from '#engine/workflow/saved-json.ts'
import { Attributes, isSecretAttribute } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { BoundSubject, ReadVersion } from '#sdk/workflow/workflow.ts'
import type { RequestMap, TaskSignal, TimedGroup, WorkflowUser } from '#sdk/workflow/workflow-task.ts'

/** The version of the stored form; others are rejected. */
const format = 1
/** The maximum number of characters of JSON. */
const maxSize = 1_000_000

/** A run between two steps. Secrets, such as passwords and attributes with secret names, are separate. */
export interface SavedRun {
  readonly data: JsonObject
  /** Stored encrypted; absent if nothing is secret. */
  readonly secret?: JsonObject
}

/** What the store itself knows of a run. */
export type RunHead = Pick<
  RunProgress,
  'id' | 'workflow' | 'subject' | 'requestor' | 'caller' | 'who' | 'reason' | 'requestId'
>

/** Throws WORKFLOW_FAILED for a run that can't be stored, or is too large. */
export function saveRun(state: RunProgress): SavedRun {
  const maps: VersionMaps = []
  const secrets: Record<string, JsonValue> = {}
  const root = saveUser(state.user, maps)
  if (root.secret !== undefined) secrets['user'] = root.secret
  const frames = state.frames.map(({ workflow, hash, place, next, user }, i): JsonObject => {
    const copy = user && saveUser(user, maps)
    if (copy?.secret !== undefined) secrets[`frame${i}`] = copy.secret
    return { workflow, hash, place, next, ...(copy === undefined ? {} : { user: copy.plain }) }
  })
  const { shown, hidden } = saveRequest(state.request)
  if (hidden.length > 0) secrets['request'] = hidden
  const data = {
    format,
    user: root.plain,
    versions: maps.map((map) => Array.from(map.values(), versionToJson)),
    request: shown,
    frames,
    pins: Array.from(state.pins, ([name, hash]) => [name, hash]),
    steps: state.steps,
    ...(state.depth === undefined ? {} : { depth: state.depth }),
    ...(state.session === undefined ? {} : { session: state.session }),
    ...(state.signal === undefined ? {} : { signal: signalToJson(state.signal) }),
    ...(state.approval === undefined ? {} : { approval: state.approval }),
    ...(state.intents === undefined ? {} : { intents: intentsToJson(state.intents) }),
    ...(state.bound === undefined ? {} : { bound: boundToJson(state.bound) }),
    ...(state.newAccount === undefined ? {} : { newAccount: newAccountToJson(state.newAccount) }),
  }
  return Object.keys(secrets).length === 0 ? { data } : { data, secret: secrets }
}

/** Throws WORKFLOW_FAILED for a run that is too large to be stored. */
export function checkSize({ data, secret }: SavedRun): void {
  const size = JSON.stringify(data).length + (secret === undefined ? 0 : JSON.stringify(secret).length)
  if (size <= maxSize) return
  throw new GatewayError('WORKFLOW_FAILED', `the run takes ${size} characters, and at most ${maxSize} are stored`)
}

/** The run as it was saved. Throws WORKFLOW_FAILED for anything that `saveRun` did not write. */
export function restoreRun(head: RunHead, { data, secret }: SavedRun): RunProgress {
  const saved = new SavedObject(data, 'run')
  if (saved.value('format') !== format) throw broken('its form is another')
  const secrets = secret === undefined ? undefined : new SavedObject(secret, 'secret')
  const maps = saved.list('versions').map(versionsFromJson)
  const frames = saved.list('frames').map((value, i) => restoreFrame(value, secrets?.value(`frame${i}`), maps))
  const request: RequestMap = new Map(saved.pairs('request'))
  if (secrets?.value('request') !== undefined) {
    for (const [key, value] of secrets.pairs('request')) request.set(key, value)
  }
  const pins = saved.pairs('pins').map(([name, hash]): [string, string] => {
    if (typeof hash !== 'string') throw broken('run.pins')
    return [name, hash]
  })
  const signal = signalFromJson(saved.value('signal'))
  const approval = saved.optionalText('approval')
  const session = saved.optionalText('session')
  const bound = saved.value('bound')
  return {
    ...head,
    user: restoreUser(saved.value('user'), secrets?.value('user'), maps),
    request,
    frames,
    pins: new Map(pins),
    steps: saved.count('steps'),
    ...(saved.value('depth') === undefined ? {} : { depth: saved.count('depth') }),
    ...(signal === undefined ? {} : { signal }),
    ...(approval === undefined ? {} : { approval }),
    ...(session === undefined ? {} : { session }),
    ...(saved.value('intents') === undefined ? {} : { intents: intentsFromJson(saved.list('intents')) }),
    ...(bound === undefined ? {} : { bound: boundFromJson(bound) }),
    ...newAccountIn(data),
  }
}

const boundToJson = ({ attributes }: BoundSubject): JsonValue => (attributes === 'any' ? attributes : [...attributes])

const boundFromJson = (value: JsonValue): BoundSubject => ({
  attributes: value === 'any' ? value : asTexts(value, 'run.bound'),
})

/** Moves past the next task, even if it waited. Undefined if no task is left. */
export function skipTask(data: JsonObject): JsonObject | undefined {
  const saved = new SavedObject(data, 'run')
  const frames = saved.list('frames')
  const last = frames.at(-1)
  if (last === undefined) return undefined
  const next = new SavedObject(last, 'frame').count('next') + 1
  const { signal: _, intents: __, attempts: ___, ...others } = data
  const steps = saved.count('steps') + 1
  return { ...others, steps, frames: [...frames.slice(0, -1), { ...(last as JsonObject), next }] }
}

function saveRequest(request: RequestMap): { shown: JsonValue[]; hidden: JsonValue[] } {
  const [shown, hidden]: [JsonValue[], JsonValue[]] = [[], []]
  for (const [key, value] of request) {
    if (value === undefined) continue
    ;(isSecretAttribute(key) ? hidden : shown).push([key, toJson(value, `request parameter "${key}"`)])
  }
  return { shown, hidden }
}

function restoreFrame(value: JsonValue, secret: JsonValue | undefined, maps: VersionMaps): Frame {
  const saved = new SavedObject(value, 'frame')
  const user = saved.value('user')
  return {
    workflow: saved.text('workflow'),
    hash: saved.text('hash'),
    place: saved.text('place'),
    next: saved.count('next'),
    ...(user === undefined ? {} : { user: restoreUser(user, secret, maps) }),
  }
}

const versionToJson = ({ target, version, userID, group }: ReadVersion): JsonObject => ({
  target,
  version,
  ...(userID === undefined ? {} : { userID }),
  ...(group === undefined ? {} : { group: { name: group.name, id: group.id } }),
})

function versionsFromJson(value: JsonValue): Map<string, ReadVersion> {
  if (!Array.isArray(value)) throw broken('run.versions')
  return new Map(
    (value as readonly JsonValue[]).map((item) => {
      const read = versionFromJson(new SavedObject(item, 'version'))
      return [read.target, read]
    }),
  )
}

function versionFromJson(saved: SavedObject): ReadVersion {
  const userID = saved.optionalText('userID')
  const group = saved.value('group') === undefined ? undefined : saved.object('group')
  return {
    target: saved.text('target'),
    version: saved.text('version'),
    ...(userID === undefined ? {} : { userID }),
    ...(group === undefined ? {} : { group: { name: group.text('name'), id: group.text('id') } }),
  }
}

const newAccountToJson = ({ unique, created, refusal }: NonNullable<RunProgress['newAccount']>): JsonObject => ({
  unique: unique.map(({ attribute, value }) => ({ attribute, value })),
  created: created.map((account) => ({ ...account })),
  ...(refusal === undefined ? {} : { refusal: { ...refusal } }),
})

/** Whether the run may only create accounts, by its stored form. */
export function newAccountIn(data: JsonObject): Pick<RunProgress, 'newAccount'> {
  if (data['newAccount'] === undefined) return {}
  const saved = new SavedObject(data['newAccount'], 'newAccount')
  const unique = saved.list('unique').map((item) => {
    const value = new SavedObject(item, 'unique')
    return { attribute: value.text('attribute'), value: value.text('value') }
  })
  const created = saved.list('created').map((item) => {
    const account = new SavedObject(item, 'created')
    const id = account.optionalText('id')
    return { target: account.text('target'), userID: account.text('userID'), ...(id === undefined ? {} : { id }) }
  })
  if (saved.value('refusal') === undefined) return { newAccount: { unique, created } }
  const mail = saved.object('refusal')
  const notifier = mail.optionalText('notifier')
  const [recipient, subject, text] = [mail.text('recipient'), mail.text('subject'), mail.text('text')]
  const refusal = { recipient, subject, text, ...(notifier === undefined ? {} : { notifier }) }
  return { newAccount: { unique, created, refusal } }
}

/** The result of a wait, in the form it is stored in. */
function signalToJson(signal: TaskSignal): JsonObject {
  if (signal.kind === 'time') return { kind: 'time' }
  const { kind, approval, approved, by, onBehalfOf, comment } = signal
  return {
    kind,
    approval,
    approved,
    ...(by === undefined ? {} : { by }),
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    ...(comment === undefined ? {} : { comment }),
  }
}

/** Undefined for a value that isn't a signal. */
export function signalFromJson(value: JsonValue | undefined): TaskSignal | undefined {
  if (!isJsonObject(value)) return undefined
  const { kind, approval, approved } = value
  if (kind === 'time') return { kind }
  if (kind !== 'approval' || typeof approval !== 'string' || typeof approved !== 'boolean') return undefined
  return {
    kind,
    approval,
    approved,
    ...optionalText('by', value),
    ...optionalText('onBehalfOf', value),
    ...optionalText('comment', value),
  }
}

function optionalText<K extends string>(name: K, object: JsonObject): { readonly [N in K]?: string } {
  const value = object[name]
  return typeof value === 'string' ? ({ [name]: value } as { readonly [N in K]?: string }) : {}
}

/** Versions of the users of one run. Several users may share one map, and do so again after storing. */
type VersionMaps = Map<string, ReadVersion>[]

/** A user in two parts; the secret one, absent if nothing is secret, must be encrypted. */
interface SavedUser {
  readonly plain: JsonObject
  readonly secret?: JsonObject
}

function saveUser(user: WorkflowUser, maps: VersionMaps): SavedUser {
  const shown: JsonValue[] = []
  const hidden: JsonValue[] = []
  for (const [name, values] of user.attributes) (isSecretAttribute(name) ? hidden : shown).push([name, [...values]])
  const { groupIds, id, version, created, modified, cleared, groupChanges, requestReason, newUserID, basedOn } = user
  const { password, timedGroups } = user
  return {
    plain: {
      userID: user.userID,
      attributes: shown,
      groups: [...user.groups],
      keepGroups: user.keepGroups,
      ...(groupIds === undefined ? {} : { groupIds: [...groupIds] }),
      ...(id === undefined ? {} : { id }),
      ...(version === undefined ? {} : { version }),
      ...(created === undefined ? {} : { created: created.getTime() }),
      ...(modified === undefined ? {} : { modified: modified.getTime() }),
      ...(cleared === undefined ? {} : { cleared: [...cleared] }),
      ...(groupChanges === undefined
        ? {}
        : { groupChanges: { add: [...groupChanges.add], remove: [...groupChanges.remove] } }),
      ...(timedGroups === undefined ? {} : { timedGroups: timedGroups.map(timedToJson) }),
      ...(requestReason === undefined ? {} : { requestReason }),
      ...(newUserID === undefined ? {} : { newUserID }),
      ...(basedOn === undefined ? {} : { basedOn: numberOf(basedOn, maps) }),
    },
    ...(hidden.length === 0 && password === undefined
      ? {}
      : { secret: { attributes: hidden, ...(password === undefined ? {} : { password }) } }),
  }
}

function numberOf(map: Map<string, ReadVersion>, maps: VersionMaps): number {
  const known = maps.indexOf(map)
  return known >= 0 ? known : maps.push(map) - 1
}

/** Secret attributes come after the others. Throws WORKFLOW_FAILED for invalid data. */
function restoreUser(plain: JsonValue | undefined, secret: JsonValue | undefined, maps: VersionMaps): WorkflowUser {
  const saved = new SavedObject(plain, 'user')
  const user: WorkflowUser = {
    userID: saved.text('userID'),
    attributes: new Attributes(),
    groups: saved.texts('groups'),
    keepGroups: saved.value('keepGroups') === true,
    ...given('groupIds', saved.value('groupIds') === undefined ? undefined : saved.texts('groupIds')),
    ...given('id', saved.optionalText('id')),
    ...given('version', saved.optionalText('version')),
    ...given('created', time(saved, 'created')),
    ...given('modified', time(saved, 'modified')),
    ...given('cleared', saved.value('cleared') === undefined ? undefined : saved.texts('cleared')),
    ...given('requestReason', saved.optionalText('requestReason')),
    ...given('newUserID', saved.optionalText('newUserID')),
  }
  if (saved.value('groupChanges') !== undefined) {
    const changes = saved.object('groupChanges')
    user.groupChanges = { add: changes.texts('add'), remove: changes.texts('remove') }
  }
  if (saved.value('timedGroups') !== undefined) user.timedGroups = saved.list('timedGroups').map(timedFromJson)
  if (saved.value('basedOn') !== undefined) {
    const map = maps[saved.count('basedOn')]
    if (map === undefined) throw broken('user.basedOn')
    user.basedOn = map
  }
  addAttributes(user, saved)
  if (secret !== undefined) {
    const hidden = new SavedObject(secret, 'secret')
    addAttributes(user, hidden)
    const password = hidden.optionalText('password')
    if (password !== undefined) user.password = password
  }
  return user
}

function addAttributes(user: WorkflowUser, saved: SavedObject): void {
  for (const [name, values] of saved.pairs('attributes')) user.attributes.add(name, asTexts(values, 'attributes'))
}

const timedToJson = ({ name, expiry }: TimedGroup): JsonObject =>
  'at' in expiry
    ? { name, at: expiry.at.getTime() }
    : { name, months: expiry.after.months, millis: expiry.after.millis }

function timedFromJson(value: JsonValue): TimedGroup {
  const saved = new SavedObject(value, 'timedGroups')
  const at = time(saved, 'at')
  const expiry = at === undefined ? { after: { months: saved.count('months'), millis: saved.count('millis') } } : { at }
  return { name: saved.text('name'), expiry }
}

const time = (saved: SavedObject, name: string): Date | undefined => {
  const value = saved.value(name)
  if (value === undefined) return undefined
  if (typeof value !== 'number') throw broken(`user.${name}`)
  return new Date(value)
}

const given = <K extends string, V>(name: K, value: V | undefined): { [N in K]?: V } =>
  value === undefined ? {} : ({ [name]: value } as { [N in K]?: V })
