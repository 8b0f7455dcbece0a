import type { Filter } from '#identity/filter/ast.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { Projection } from '#protocols/scim/projection.ts'
import { resourceAddress } from '#protocols/scim/resource-address.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/schema/resource.ts'
import type { AttributePath, AttributeRef } from '#protocols/scim/schema/resource-schema.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'
import { enterpriseUserSchema } from '#protocols/scim/schema/standard-schemas.ts'
import type { DryRun } from './dry-run.ts'
import { locate, userFilterNames } from './filter-translation.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { ListRequest } from './lists.ts'
import { type FoundUser, type Lookups, lookupWidth } from './lookups.ts'
import type { UserMapping } from './resource-mapping.ts'

/** The shown part of a manager; undefined if there is no such user. */
type Manager = { readonly id: string; readonly displayName?: string } | undefined

/** The managers that were looked up for one answer, by id. */
export type KnownManagers = Map<string, Promise<Manager>>

/** Changes a user with a deleted manager. */
type ReportChange = (user: FoundUser, edit: (before: ScimResource) => ScimResource) => Promise<unknown>

/** The most users whose manager is cleared after one delete, and how many are searched at once. */
const maxReports = 1000
const reportsPage = 100

/** The enterprise extension's `manager` as a reference to another user of this gateway. */
export class Managers {
  readonly #ref: AttributeRef | undefined
  /** Values must be ids of users; others are refused, and not shown. */
  readonly #areUsers: boolean
  readonly #lookups: Lookups
  readonly #view: UserMapping
  readonly #log: Logger
  /** The attribute to search users by manager; undefined if the store cannot search them. */
  readonly #searchedBy: string | undefined

  constructor(config: GatewayConfig, lookups: Lookups, view: UserMapping, log: Logger) {
    const path = config.users.schema.resolveAttribute(`${enterpriseUserSchema.id}:manager.value`)
    this.#ref = path
    this.#areUsers = config.users.unknownManager === 'refuse'
    this.#lookups = lookups
    this.#view = view
    this.#log = log
    const location = path === undefined ? undefined : locate(path, userFilterNames({ config, lookups }))
    const [name, second] = location?.inside === true ? [] : (location?.names ?? [])
    this.#searchedBy = second === undefined ? name : undefined
  }

  /**
   * The resource to store, in which `manager` is the id of a user, taken from `value` or, if only that changes, `$ref`.
   * Throws invalidValue if there is no such user. An unchanged manager is not checked.
   */
  async checked(before: JsonObject, after: ScimResource): Promise<ScimResource> {
    const wanted = this.#of(after)
    const old = this.#of(before)
    if (this.#ref === undefined || wanted === undefined || !this.#areUsers || sameValue(old, wanted)) return after
    const id = wantedId(old, wanted)
    const result = { ...after }
    if (id === undefined || id === old?.['value']) {
      writeAttribute(result, this.#ref, id === undefined ? undefined : { value: id })
      return result
    }
    const found = await this.#lookups.userById(id)
    if (found === undefined) {
      const remedy = 'Create the user first, leave the manager out, or set unknownManager to accept.'
      throw scimError('invalidValue', `manager.value: there is no user with id ${quoted(id)}. ${remedy}`)
    }
    writeAttribute(result, this.#ref, { value: found.id })
    return result
  }

  /** Adds `$ref` and `displayName` of each manager, and looks each up once. Managers that do not exist are left out. */
  shown(
    resources: readonly ScimResource[],
    base: string,
    known: KnownManagers = new Map(),
  ): Awaitable<readonly ScimResource[]> {
    if (resources.every((resource) => this.#of(resource)?.['value'] === undefined)) return resources
    for (const resource of resources) {
      const id = resource['id']
      if (typeof id === 'string' && !known.has(id)) known.set(id, Promise.resolve(managerOf(id, resource)))
    }
    return inParallel(resources, lookupWidth, async (resource) => {
      const id = this.#of(resource)?.['value']
      return typeof id === 'string'
        ? this.#withManager(resource, id, await this.#manager(id, base, known), base)
        : resource
    })
  }

  /** Whether the list filters or sorts by parts of managers that the store does not have. */
  concerns({ filter, sort }: ListRequest): boolean {
    const isPart = ({ attribute, sub }: AttributePath): boolean =>
      attribute === this.#ref?.attribute && sub !== undefined && sub.name !== 'value'
    const inFilter = (part: ScimFilter): boolean => {
      if ('filters' in part) return part.filters.some(inFilter)
      if (part.kind === 'not') return inFilter(part.filter)
      return part.kind === 'element' ? part.of.attribute === this.#ref?.attribute : isPart(part.path)
    }
    return (filter !== undefined && inFilter(filter)) || (sort !== undefined && isPart(sort.path))
  }

  /** Whether an answer of this projection shows managers. */
  areShownBy(projection: Projection | undefined): boolean {
    const ref = this.#ref
    if (ref === undefined || projection === undefined) return ref !== undefined
    const probe: ScimResource = {}
    writeAttribute(probe, ref, { value: 'x', $ref: 'x', displayName: 'x' })
    return readAttribute(projection.apply(probe), ref) !== undefined
  }

  /** Clears the manager of all users whose manager was deleted. Failures are logged, since the delete itself is done. */
  async clear(id: string, change: ReportChange) {
    const reports = this.#reportsOf(id)
    if (reports === undefined) return
    const { search, edit } = reports
    let failure: unknown
    try {
      let { items, total } = await search()
      if (total === 0) return
      const users = total
      for (let seen = 0; items.length > 0 && seen < maxReports; seen += items.length) {
        await inParallel(items, lookupWidth, (user) =>
          change(user, edit).catch((error: unknown) => (failure ??= error)),
        )
        const left = await search()
        if (left.total >= total) break
        ;({ items, total } = left)
      }
      if (total === 0) this.#log.info('removed a deleted user as manager', { manager: id, users })
      else this.#log.warn('users still have a deleted manager', { manager: id, users: total, err: failure })
    } catch (err) {
      this.#log.warn('users may still have a deleted manager', { manager: id, err })
    }
  }

  /** Previews `clear` for the first users. A failure would only be logged, so it ends nothing. */
  async previewClear(id: string, change: ReportChange, dryRun: DryRun): Promise<void> {
    const reports = this.#reportsOf(id)
    if (reports === undefined) return
    const unknown = () => dryRun.cut('Users whose manager is deleted lose it, and not all of them are shown.')
    try {
      const { items, total } = await reports.search()
      if (total > items.length) unknown()
      await inParallel(items, lookupWidth, (user) => change(user, reports.edit).catch(unknown))
    } catch (err) {
      this.#log.info('the users of a deleted manager are not previewed', { manager: id, err })
      unknown()
    }
  }

  /** The first users with this manager, and the edit that removes it; undefined if managers are not stored or searched. */
  #reportsOf(id: string) {
    const [ref, attribute] = [this.#ref, this.#searchedBy]
    if (ref === undefined || attribute === undefined) return undefined
    const filter: Filter = { kind: 'equal', attribute, value: id, caseExact: true }
    const edit = (before: ScimResource): ScimResource => {
      const after = { ...before }
      if (this.#of(before)?.['value'] === id) writeAttribute(after, ref, undefined)
      return after
    }
    return { edit, search: () => this.#lookups.searchUsers({ filter, offset: 0, limit: reportsPage }) }
  }

  #of(resource: JsonObject): JsonObject | undefined {
    const value = this.#ref === undefined ? undefined : readAttribute(resource, this.#ref)
    return isJsonObject(value) ? value : undefined
  }

  #manager(id: string, base: string, known: KnownManagers): Promise<Manager> {
    const present = known.get(id)
    if (present !== undefined) return present
    const read = async (): Promise<Manager> => {
      const found = id === '' ? undefined : await this.#lookups.userById(id)
      return found && managerOf(found.id, await this.#view.resource(found, base))
    }
    const reading = read()
    known.set(id, reading)
    return reading
  }

  #withManager(resource: ScimResource, value: string, manager: Manager, base: string): ScimResource {
    const ref = this.#ref
    if (ref === undefined || (manager === undefined && !this.#areUsers)) return resource
    const result = { ...resource }
    if (manager !== undefined) {
      const { displayName } = manager
      const named = displayName === undefined ? {} : { displayName }
      const shown = { ...this.#of(resource), value, $ref: resourceAddress(base, 'User', manager.id), ...named }
      writeAttribute(result, ref, shown)
      return result
    }
    writeAttribute(result, ref, undefined)
    const schemas = result['schemas']
    if (Array.isArray(schemas) && ref.extension !== undefined && result[ref.extension] === undefined) {
      result['schemas'] = schemas.filter((schema) => schema !== ref.extension)
    }
    return result
  }
}

function managerOf(id: string, { displayName, name }: JsonObject): Manager {
  const formatted = isJsonObject(name) ? name['formatted'] : undefined
  const shown = typeof displayName === 'string' && displayName !== '' ? displayName : formatted
  return typeof shown === 'string' && shown !== '' ? { id, displayName: shown } : { id }
}

/** `value`; the id in `$ref` if there is no value, or if the value is unchanged and the address is another user's. */
function wantedId(old: JsonObject | undefined, wanted: JsonObject): string | undefined {
  const { value, $ref } = wanted
  const named = typeof $ref === 'string' && $ref !== '' ? idIn($ref) : undefined
  const given = typeof value === 'string' && value !== '' ? value : undefined
  return given === undefined || given === old?.['value'] ? (named ?? given) : given
}

function idIn(address: string): string {
  const segment = /(?:^|\/)Users\/([^/?#]+)$/i.exec(address)?.[1]
  try {
    if (segment !== undefined) return decodeURIComponent(segment)
  } catch {
    // Not well encoded, so not the address of a user.
  }
  throw scimError(
    'invalidValue',
    `manager.$ref: ${quoted(address)} is not the address of a user. Send the id of the manager as manager.value.`,
  )
}
