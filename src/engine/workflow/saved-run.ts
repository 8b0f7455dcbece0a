import { intentsFromJson, intentsToJson } from '#engine/workflow/intents.ts'
import type { Frame, RunProgress } from '#engine/workflow/run-progress.ts'
import { asTexts, broken, SavedObject, toJson } from '#engine/workflow/saved-json.ts'
import { restoreUser, saveUser, type VersionMaps } from '#engine/workflow/saved-user.ts'
import { isSecretAttribute } from '#identity/secret-attribute.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { BoundSubject, ReadVersion } from '#sdk/workflow/workflow.ts'
import type { RequestMap, TaskSignal } from '#sdk/workflow/workflow-task.ts'

/** The form that runs are stored in; others are refused. */
const format = 1
/** Characters of JSON that a run may have. */
const maxSize = 1_000_000

/** A run between two steps. What is secret, passwords and attributes that are named like one, is apart from the rest. */
export interface SavedRun {
  readonly data: JsonObject
  /** To be stored sealed; absent when there is nothing secret. */
  readonly secret?: JsonObject
}

/** What the store knows of a run by itself. */
export type RunHead = Pick<
  RunProgress,
  'id' | 'workflow' | 'subject' | 'requestor' | 'caller' | 'who' | 'reason' | 'requestId'
>

/** Throws WORKFLOW_FAILED for a run that holds what cannot be stored, or too much. */
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

/** Behind the task that would run next, whatever it waited for. Undefined when no task is left. */
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
