import { setTimeout as wait } from 'node:timers/promises'
import { Attributes } from '#identity/attributes.ts'
import { unaudited } from '#identity/entry-changes.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId, secretHash } from '#kernel/ids.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { readPath } from '#protocols/scim/schema/resource.ts'
import { type AttributePath, isCore, pathKey, type ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema/schema.ts'

/** A value that no two resources of the type may have. */
export interface UniqueValue {
  readonly path: AttributePath
  readonly value: string
}

/** The attributes with unique values, without the name of the resource, which its target keeps unique. */
export function uniquePaths(schema: ResourceSchema, nameAttribute: string): readonly AttributePath[] {
  const isUnique = ({ uniqueness, mutability }: SchemaAttribute): boolean =>
    uniqueness !== 'none' && mutability !== 'readOnly'
  return Array.from(schema.attributes()).flatMap((ref): AttributePath[] => {
    const { attribute } = ref
    if (isCore(ref, nameAttribute)) return []
    const parts = attribute.multiValued ? [] : attribute.subAttributes.filter(isUnique)
    return [...(isUnique(attribute) ? [ref] : []), ...parts.map((sub) => ({ ...ref, sub }))]
  })
}

/** The unique values that a change adds. */
export const addedValues = (
  paths: readonly AttributePath[],
  before: JsonObject,
  after: JsonObject,
): readonly UniqueValue[] =>
  paths.flatMap((path) => {
    const known = new Set(textsOf(readPath(before, path)))
    return textsOf(readPath(after, path)).flatMap((value) => (known.has(value) ? [] : [{ path, value }]))
  })

const textsOf = (value: JsonValue | undefined): readonly string[] =>
  [value].flat().flatMap((one) => (typeof one === 'string' && one !== '' ? [one] : []))

/** How the values of one type are kept unique. */
export interface Uniqueness {
  readonly paths: readonly AttributePath[]
  readonly locks: ValueLocks
}

/** A change that has not ended by then belongs to a process that died. */
const maxHoldMillis = 2 * 60_000
const maxWaitMillis = 5000

/**
 * Of several changes that add one value, in any process, one runs at a time, so that the next one finds the value. Each lock
 * is a user of a directory.
 */
export class ValueLocks {
  readonly #directory: UserDirectory
  readonly #clock: Clock

  constructor(directory: UserDirectory, clock: Clock) {
    this.#directory = directory
    this.#clock = clock
  }

  /** Throws TARGET_UNREACHABLE with Retry-After if other changes hold a value for too long. */
  async run<T>(values: readonly UniqueValue[], work: () => Promise<T>): Promise<T> {
    const names = values.map(({ path, value }) => {
      const { caseExact } = path.sub ?? path.attribute
      return secretHash(`${pathKey(path)}|${caseExact ? value : value.toLowerCase()}`)
    })
    const held: string[] = []
    const owner = newId()
    try {
      // Two changes that add the same values wait for the same one first.
      for (const name of [...new Set(names)].sort()) {
        await this.#lock(name, owner)
        held.push(name)
      }
      return await work()
    } finally {
      // The work is done or has failed, whatever becomes of the locks; one that stays expires.
      for (const name of held) await this.#release(name, owner).catch(() => {})
    }
  }

  /** Leaves the lock of another change, which took it over because this one took too long. */
  async #release(name: string, owner: string): Promise<void> {
    const lock = await this.#directory.lookupUserByLogin(name)
    if (lock?.attributes.first('owner') !== owner) return
    await this.#directory.deleteUser(lock, unaudited, expecting(lock))
  }

  /** False if another change released it or took it over meanwhile. A delete would not show that: each new lock has version 1. */
  async #takeOver(present: User, lock: User): Promise<boolean> {
    const attributes = lock.attributes.names()
    try {
      const options = { addOnly: false, attributes, keepGroups: true, ...expecting(present) }
      await this.#directory.syncUser(lock, options, unaudited)
      return true
    } catch (error) {
      if (!(error instanceof GatewayError) || !['VERSION_MISMATCH', 'NOT_FOUND'].includes(error.code)) throw error
      return false
    }
  }

  async #lock(name: string, owner: string): Promise<void> {
    const end = performance.now() + maxWaitMillis
    for (let pause = 10; ; pause = Math.min(pause * 2, 200)) {
      const lock = lockOf(name, { since: [this.#clock().toISOString()], owner: [owner] })
      try {
        await this.#directory.createUser(lock, lock.attributes.names(), unaudited, { mustBeNew: true })
        return
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
        if (performance.now() > end) throw busy(error)
      }
      const other = await this.#directory.lookupUserByLogin(name)
      const since = Date.parse(other?.attributes.first('since') ?? '')
      const isLost = this.#clock().getTime() - since > maxHoldMillis
      if (!isLost || other === undefined) await wait(pause)
      else if (await this.#takeOver(other, lock)) return
    }
  }
}

const expecting = ({ version }: User) => (version === undefined ? {} : { expectedVersion: version })

const lockOf = (name: string, values: Readonly<Record<string, readonly string[]>>) => ({
  userID: name,
  attributes: Attributes.from(values),
  groups: [],
})

const busy = (cause: unknown) =>
  new GatewayError('TARGET_UNREACHABLE', 'other changes add the same unique value', {
    cause,
    publicText: 'Other requests are writing the same value of an attribute whose values are unique. Try again.',
    retryAfter: 1,
  })
