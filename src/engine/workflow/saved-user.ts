import { asTexts, broken, SavedObject } from '#engine/workflow/saved-json.ts'
import { Attributes } from '#identity/attributes.ts'
import { isSecretAttribute } from '#identity/secret-attribute.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { ReadVersion } from '#sdk/workflow/workflow.ts'
import type { TimedGroup, WorkflowUser } from '#sdk/workflow/workflow-task.ts'

/** Versions that users of one run were read at. Several users may share one map, and do so again when taken up. */
export type VersionMaps = Map<string, ReadVersion>[]

/** A user in two parts; the secret one, absent when there is nothing secret, must not be stored in clear. */
export interface SavedUser {
  readonly plain: JsonObject
  readonly secret?: JsonObject
}

export function saveUser(user: WorkflowUser, maps: VersionMaps): SavedUser {
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

/** Attributes that were secret come after the others. Throws WORKFLOW_FAILED for what no user was saved as. */
export function restoreUser(
  plain: JsonValue | undefined,
  secret: JsonValue | undefined,
  maps: VersionMaps,
): WorkflowUser {
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
