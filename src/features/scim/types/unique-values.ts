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
import {
  type AttributePath,
  internalName,
  isCore,
  pathKey,
  type ResourceSchema,
} from '#protocols/scim/schema/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { redacted, scimError } from '#protocols/scim/schema/scim-error.ts'
import type { RunService } from '#workflows/runs/run-service.ts'

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

/** What adds the values: a change of the resource with this key, as its runs have it. */
interface ValueChange {
  readonly resource: string
  /** The run that it has started. */
  run(): string | undefined
}

/** A change that has not ended by then belongs to a process that died. */
const maxHoldMillis = 2 * 60_000
const maxWaitMillis = 5000
/** The locks of ended changes that are removed at a start. */
const mostPruned = 1000
const attributes = ['since', 'owner', 'resource', 'run']

/**
 * Of several changes that add one value, in any process, one runs at a time, so that the next one finds the value. A run
 * that waits, or is tried again, keeps the locks of its values until it ends. Each lock is a user of a directory.
 */
export class ValueLocks {
  readonly #directory: UserDirectory
  readonly #clock: Clock
  /** Whether the run or, if the process died before it knew it, one of the resource has not ended. */
  readonly #isOpen: RunService['isOpen']

  constructor(directory: UserDirectory, clock: Clock, isOpen: RunService['isOpen']) {
    this.#directory = directory
    this.#clock = clock
    this.#isOpen = isOpen
  }

  /**
   * Throws uniqueness if a change of another resource that has not ended adds one of the values, TARGET_UNREACHABLE with
   * Retry-After if other changes hold a value for too long.
   */
  async run<T>(values: readonly UniqueValue[], change: ValueChange, work: () => Promise<T>): Promise<T> {
    const held: string[] = []
    const owner = newId()
    const { resource } = change
    try {
      // Two changes that add the same values wait for the same one first.
      for (const [name, value] of namesOf(values)) {
        await this.#lock(name, value, { owner, resource })
        held.push(name)
      }
      try {
        return await work()
      } catch (error) {
        const run = change.run()
        if (await this.#isOpen({ run, resource }).catch(() => true)) {
          for (const name of held.splice(0)) await this.#leave(name, { owner, resource, run }).catch(() => {})
        }
        throw error
      }
    } finally {
      // The work is done or has failed, whatever becomes of the locks; one that stays expires.
      for (const name of held) await this.#release(name, owner).catch(() => {})
    }
  }

  /** Throws uniqueness as `run` does, without waiting or writing. */
  async requireFree(values: readonly UniqueValue[], resource: string): Promise<void> {
    for (const [name, value] of namesOf(values)) {
      const lock = await this.#directory.lookupUserByLogin(name)
      if (lock !== undefined && (await this.#isKept(lock, resource))) throw kept(value)
    }
  }

  /** Removes the locks of changes that have ended. */
  async prune(): Promise<void> {
    const { items } = await this.#directory.searchUsers({ offset: 0, limit: mostPruned })
    for (const lock of items) {
      if (!this.#isLost(lock) || (await this.#isKept(lock, ''))) continue
      await this.#directory.deleteUser(lock, unaudited, expecting(lock))
    }
  }

  /** Leaves the lock of another change, which took it over because this one took too long. */
  async #release(name: string, owner: string): Promise<void> {
    const lock = await this.#directory.lookupUserByLogin(name)
    if (lock?.attributes.first('owner') !== owner) return
    await this.#directory.deleteUser(lock, unaudited, expecting(lock))
  }

  /** The lock is that of the run now, which no process executes. */
  async #leave(
    name: string,
    { owner, resource, run }: LockOwner & { readonly run: string | undefined },
  ): Promise<void> {
    const lock = await this.#directory.lookupUserByLogin(name)
    if (lock?.attributes.first('owner') !== owner) return
    await this.#takeOver(lock, lockOf(name, { since: new Date(0), owner, resource, run }))
  }

  /** False if another change released it or took it over meanwhile. A delete would not show that: each new lock has version 1. */
  async #takeOver(present: User, lock: User): Promise<boolean> {
    try {
      const options = { addOnly: false, attributes, keepGroups: true, ...expecting(present) }
      await this.#directory.syncUser(lock, options, unaudited)
      return true
    } catch (error) {
      if (!(error instanceof GatewayError) || !['VERSION_MISMATCH', 'NOT_FOUND'].includes(error.code)) throw error
      return false
    }
  }

  async #lock(name: string, value: UniqueValue, owner: LockOwner): Promise<void> {
    const end = performance.now() + maxWaitMillis
    for (let pause = 10; ; pause = Math.min(pause * 2, 200)) {
      const lock = lockOf(name, { since: this.#clock(), ...owner })
      try {
        await this.#directory.createUser(lock, lock.attributes.names(), unaudited, { mustBeNew: true })
        return
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
        if (performance.now() > end) throw busy(error)
      }
      const other = await this.#directory.lookupUserByLogin(name)
      if (other === undefined || !this.#isLost(other)) await wait(pause)
      else if (await this.#isKept(other, owner.resource)) throw kept(value)
      else if (await this.#takeOver(other, lock)) return
    }
  }

  /** No process executes its change. */
  #isLost({ attributes: stored }: User): boolean {
    return this.#clock().getTime() - Date.parse(stored.first('since') ?? '') > maxHoldMillis
  }

  /** For a change of another resource. A later one of the same resource comes after the earlier, or replaces it. */
  async #isKept(lock: User, resource: string): Promise<boolean> {
    const holder = lock.attributes.first('resource')
    if (holder === undefined || holder === resource || !this.#isLost(lock)) return false
    return await this.#isOpen({ run: lock.attributes.first('run'), resource: holder })
  }
}

interface LockOwner {
  readonly owner: string
  readonly resource: string
}

/** The names of the locks, in an order that all changes share. */
const namesOf = (values: readonly UniqueValue[]): readonly (readonly [string, UniqueValue])[] =>
  [
    ...new Map(
      values.map((one) => {
        const { caseExact } = one.path.sub ?? one.path.attribute
        return [secretHash(`${pathKey(one.path)}|${caseExact ? one.value : one.value.toLowerCase()}`), one] as const
      }),
    ),
  ].sort(([a], [b]) => (a < b ? -1 : 1))

const expecting = ({ version }: User) => (version === undefined ? {} : { expectedVersion: version })

const lockOf = (
  name: string,
  { since, owner, resource, run }: LockOwner & { readonly since: Date; readonly run?: string | undefined },
) => ({
  userID: name,
  attributes: Attributes.from({
    since: [since.toISOString()],
    owner: [owner],
    resource: [resource],
    ...(run === undefined ? {} : { run: [run] }),
  }),
  groups: [],
})

const kept = ({ path, value }: UniqueValue) =>
  scimError(
    'uniqueness',
    `${internalName(path)}: a change of another resource that has not ended has ${redacted(value)}. Send another value.`,
  )

const busy = (cause: unknown) =>
  new GatewayError('TARGET_UNREACHABLE', 'other changes add the same unique value', {
    cause,
    publicText: 'Other requests are writing the same value of an attribute whose values are unique. Try again.',
    retryAfter: 1,
  })
