import { Attributes } from '#identity/attributes.ts'
import { readTime } from '#identity/entry-times.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { JsonPath } from '#kernel/json-path.ts'
import type { EntryPaths } from './webhook-config.ts'

/** Reads users and groups from what the API answered. Throws TARGET_FAILED, by name, for what it cannot be. */
export class EntryReader {
  readonly #target: string

  constructor(target: string) {
    this.#target = target
  }

  /** What the path finds; lists count as their elements. */
  items(document: JsonValue, path: JsonPath): JsonValue[] {
    let found: readonly JsonValue[]
    try {
      found = path(document)
    } catch (cause) {
      throw this.#malformed('nested too deep to be read', cause)
    }
    return found
      .flatMap((item) => (Array.isArray(item) ? (item as JsonValue[]) : [item]))
      .filter((item) => item !== null)
  }

  texts(document: JsonValue, path: JsonPath, what: string): string[] {
    return this.items(document, path).map((value) => {
      if (typeof value === 'object') throw this.#malformed(`"${what}" is no text`)
      return String(value)
    })
  }

  user(document: JsonValue, paths: EntryPaths): User {
    return {
      userID: this.#one(document, paths.name, 'userID'),
      attributes: this.#attributes(document, paths),
      groups: paths.links === undefined ? [] : this.texts(document, paths.links, 'groups'),
      ...this.#optional('id', document, paths.id),
      ...this.#optional('version', document, paths.version),
      ...this.#times(document, paths),
    }
  }

  group(document: JsonValue, paths: EntryPaths): Group {
    const name = this.#one(document, paths.name, 'name')
    const attributes = this.#attributes(document, paths)
    const description = attributes.first('description')
    return {
      id: name,
      name,
      members: paths.links === undefined ? [] : this.texts(document, paths.links, 'members'),
      attributes,
      ...(description === undefined ? {} : { description }),
      ...this.#optional('id', document, paths.id),
      ...this.#optional('version', document, paths.version),
      ...this.#times(document, paths),
    }
  }

  /** An entry may lack them; what is there must be a time. */
  #times(
    document: JsonValue,
    { created, modified }: EntryPaths,
  ): { readonly created?: Date; readonly modified?: Date } {
    const time = (path: JsonPath | undefined, what: string): Date | undefined => {
      const [text] = path === undefined ? [] : this.texts(document, path, what)
      if (text === undefined) return undefined
      const read = readTime(text)
      if (read === undefined) throw this.#malformed(`"${what}" is not a time such as 2026-01-31T08:00:00Z`)
      return read
    }
    const times = { created: time(created, 'created'), modified: time(modified, 'modified') }
    return {
      ...(times.created === undefined ? {} : { created: times.created }),
      ...(times.modified === undefined ? {} : { modified: times.modified }),
    }
  }

  #attributes(document: JsonValue, { attributes }: EntryPaths): Attributes {
    return Attributes.from(Array.from(attributes, ([name, path]) => [name, this.texts(document, path, name)] as const))
  }

  #one(document: JsonValue, path: JsonPath, what: string): string {
    const [value, other] = this.texts(document, path, what)
    if (value === undefined || value === '' || other !== undefined) throw this.#malformed(`it has not one "${what}"`)
    return value
  }

  #optional<K extends string>(
    what: K,
    document: JsonValue,
    path: JsonPath | undefined,
  ): { readonly [P in K]?: string } {
    if (path === undefined) return {}
    return { [what]: this.#one(document, path, what) } as { readonly [P in K]: string }
  }

  #malformed(reason: string, cause?: unknown): GatewayError {
    return new GatewayError('TARGET_FAILED', `the answer of target "${this.#target}" cannot be used: ${reason}`, {
      cause,
    })
  }
}
