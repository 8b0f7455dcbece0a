import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { JsonValue } from '#kernel/json.ts'
import { PluginAnswerReader } from '#modules/shared/plugin/plugin-answer.ts'
import type { PluginHost } from '#protocols/plugin/plugin-host.ts'
import type { StorableAttributes, TargetChange, TargetRequest } from '#sdk/target/target.ts'

/** Calls the plug-in's functions with plain values, and reads their answers. */
export class PluginCaller {
  readonly #plugin: PluginHost

  constructor(plugin: PluginHost) {
    this.#plugin = plugin
  }

  has(functionName: string): boolean {
    return this.#plugin.has(functionName)
  }

  async ask<T>(functionName: string, args: readonly JsonValue[], read: Read<T>, request?: TargetRequest): Promise<T> {
    const services = request === undefined ? {} : { request: args.length - 1, log: request.log }
    const { value } = await this.#plugin.call({ function: functionName, args, ...services })
    return read(value, new PluginAnswerReader(functionName))
  }

  /**
   * Calls a function that changes something, with the request as its last argument. The audit gets the plug-in's own
   * entries, also those made before the call failed; where the plug-in makes none, it gets `changes`.
   */
  async change(
    functionName: string,
    args: readonly JsonValue[],
    changes: readonly TargetChange[],
    request: TargetRequest,
  ): Promise<void> {
    const reader = new PluginAnswerReader(functionName)
    let audited = false
    await this.#plugin.call({
      function: functionName,
      args: [...args, plainRequest(request)],
      request: args.length,
      log: request.log,
      onAudit: (entry) => {
        audited = true
        request.audit(reader.change(entry))
      },
    })
    if (audited) return
    for (const change of changes) request.audit(change)
  }
}

/** What a plug-in sees of the request; values that are not data are left out. */
export function plainRequest({ workflow, idempotencyKey, requestor, params }: TargetRequest): JsonValue {
  return JSON.parse(JSON.stringify({ workflow, idempotencyKey, requestor, params })) as JsonValue
}

type Read<T> = (answer: JsonValue | undefined, reader: PluginAnswerReader) => T

/** Null and undefined both mean that there is none. */
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

/** Without a list, every attribute can be stored. */
export const readStorable: Read<StorableAttributes> = (answer, reader) => {
  const { users, groups } = reader.object(answer)
  const names = (list: JsonValue | undefined, name: string): ReadonlySet<string> | 'any' =>
    list === undefined || list === null
      ? 'any'
      : new Set(reader.texts(list, name).map((attribute) => attribute.toLowerCase()))
  return { users: names(users, 'users'), groups: names(groups, 'groups') }
}
