import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { PluginAnswerReader } from '#sdk/plugin-answer.ts'
import type { StorableAttributes } from '#sdk/target.ts'

export type Read<T> = (answer: JsonValue | undefined, reader: PluginAnswerReader) => T

/** Null and undefined both mean "there is none". */
export const readOptional =
  <T>(read: Read<T>): Read<T | undefined> =>
  (answer, reader) =>
    answer === undefined || answer === null ? undefined : read(answer, reader)

export const readList =
  <T>(read: Read<T>): Read<T[]> =>
  (answer, reader) => {
    if (!Array.isArray(answer)) throw reader.malformed('it must be a list')
    return answer.map((item: JsonValue, i) => read(item, reader.at(i)))
  }

export const readFlag: Read<boolean> = (answer, reader) => reader.flag(answer)

export const readUser: Read<User> = (answer, reader) => {
  const { userID, id, version, created, modified, attributes, groups } = reader.object(answer)
  return {
    userID: reader.text(userID, 'userID'),
    attributes: reader.attributes(attributes),
    groups: reader.texts(groups, 'groups'),
    ...reader.optionalText('id', id),
    ...reader.optionalText('version', version),
    ...reader.optionalTime('created', created),
    ...reader.optionalTime('modified', modified),
  }
}

/** A group without an id is known by its name. */
export const readGroup: Read<Group> = (answer, reader) => {
  const { id, name, description, members, attributes, version, created, modified } = reader.object(answer)
  return {
    id: reader.text(id ?? name, 'id'),
    name: reader.text(name, 'name'),
    members: reader.texts(members, 'members'),
    ...reader.optionalText('description', description),
    ...reader.optionalText('version', version),
    ...reader.optionalTime('created', created),
    ...reader.optionalTime('modified', modified),
    ...(attributes === undefined || attributes === null ? {} : { attributes: reader.attributes(attributes) }),
  }
}

/** A list that is absent limits nothing. */
export const readStorable: Read<StorableAttributes> = (answer, reader) => {
  const { users, groups } = reader.object(answer)
  const names = (list: JsonValue | undefined, name: string): ReadonlySet<string> | 'any' =>
    list === undefined || list === null
      ? 'any'
      : new Set(reader.texts(list, name).map((attribute) => attribute.toLowerCase()))
  return { users: names(users, 'users'), groups: names(groups, 'groups') }
}
