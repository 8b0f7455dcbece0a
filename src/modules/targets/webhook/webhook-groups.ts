import { Attributes } from '#identity/attributes.ts'
import { groupChanges, newGroupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { requireVersion } from '#modules/shared/targets/user-reconciler.ts'
import type { GroupChange, GroupTarget, Target, TargetChange, TargetRequest } from '#sdk/target.ts'
import type { BodyValues } from './body-template.ts'
import type { OperationName } from './operations.ts'
import { refusedValue } from './refused-value.ts'
import { settled } from './settled.ts'
import type { WebhookApi } from './webhook-api.ts'

type AttributeValues = Readonly<Record<string, readonly string[]>>

/** Each change reads the group first, and changes to one group follow one another, as those to a user do. */
export class WebhookGroups implements Omit<GroupTarget, keyof Target> {
  readonly #api: WebhookApi
  readonly #queue = new KeyedQueue()

  constructor(api: WebhookApi) {
    this.#api = api
  }

  readonly findGroup = (name: string): Promise<Group | undefined> => this.#api.findGroup(name)

  readonly createGroup = (name: string, values: AttributeValues, request: TargetRequest): Promise<void> =>
    this.#inTurn(name, async () => {
      const attributes = Attributes.from(values)
      const rest = async () => {
        const found = await this.#api.findGroup(name, request)
        return found && groupChanges(found, found.name, attributes)
      }
      const before = await rest()
      if (before?.length === 0) return
      if (before !== undefined) throw taken(name)
      this.#refuseUnheld('createGroup', attributes.names())
      const body = { values: valuesOf({ id: '', name, members: [], attributes }) }
      await settled(
        async () => {
          await this.#api.write('createGroup', { group: name }, { body, request })
        },
        async () => (await rest())?.length === 0,
      )
      tell(request, newGroupChanges(name, attributes))
    })

  readonly updateGroup = (name: string, change: GroupChange, request: TargetRequest): Promise<void> =>
    this.#inTurn(name, async () => {
      const before = await this.#api.findGroup(name, request)
      if (before === undefined) throw new GatewayError('NOT_FOUND', `no group "${name}"`)
      requireVersion(before, change.expectedVersion)
      const wanted = wantedGroup(before, change)
      const given = new Map(Object.entries(change.attributes ?? {}))
      const changes = groupChanges(before, wanted.name, given)
      if (changes.length === 0 && change.expectedVersion === undefined) return
      await this.#requireFree(wanted.name, before, request)
      this.#refuseUnheld(
        'updateGroup',
        changes.flatMap(({ subject, attribute }) => (subject === 'attribute' ? [attribute] : [])),
      )
      await settled(
        async () => {
          const found = await this.#api.write('updateGroup', placesOf(before), {
            body: this.#body(wanted, before, changes),
            request,
          })
          if (!found) throw new GatewayError('NOT_FOUND', `no group "${name}"`)
        },
        async () => {
          const now = await this.#api.findGroup(wanted.name, request)
          return now !== undefined && groupChanges(now, wanted.name, given).length === 0
        },
      )
      tell(request, changes)
    })

  readonly deleteGroup = (
    name: string,
    request: TargetRequest,
    options?: { readonly expectedVersion?: string },
  ): Promise<void> =>
    this.#inTurn(name, async () => {
      const before = await this.#api.findGroup(name, request)
      if (before === undefined) return
      requireVersion(before, options?.expectedVersion)
      const places = { ...placesOf(before), version: options?.expectedVersion }
      await settled(
        async () => {
          await this.#api.write('deleteGroup', places, { request })
        },
        async () => (await this.#api.findGroup(name, request)) === undefined,
      )
      tell(request, [{ subject: 'entry', action: 'delete', attribute: 'name', value: before.name }])
    })

  /** A change of nothing, which only asks for a new version, sends the group as it is. */
  #body(wanted: Group, before: Group, changes: readonly TargetChange[]): BodyValues {
    const values = valuesOf(wanted, before)
    if (this.#api.config.operations.updateGroup?.request.method !== 'PATCH' || changes.length === 0) return { values }
    const names = new Set(
      changes.map(({ subject, attribute }) => (subject === 'entry' ? 'group' : attribute.toLowerCase())),
    )
    return { values, changed: (name) => alwaysSent.has(name) || names.has(name.toLowerCase()) }
  }

  async #requireFree(name: string, before: Group, request: TargetRequest): Promise<void> {
    if (name === before.name) return
    const other = await this.#api.findGroup(name, request)
    if (other !== undefined && other.name !== before.name) throw taken(name)
  }

  #refuseUnheld(operation: OperationName, names: readonly string[]): void {
    const places = this.#api.config.operations[operation]?.body?.places ?? []
    const held = new Set(places.map(({ name }) => name.toLowerCase()))
    const odd = names.find((name) => !held.has(name.toLowerCase()))
    if (odd !== undefined) throw refusedValue(odd, `has no place in ${operation}`)
  }

  #inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run(name.toLowerCase(), work)
  }
}

const alwaysSent = new Set(['groupId', 'version'])

function wantedGroup(before: Group, { newName = before.name, attributes = {} }: GroupChange): Group {
  const wanted = before.attributes?.clone() ?? new Attributes()
  for (const [name, values] of Object.entries(attributes)) wanted.set(name, values)
  return { ...before, name: newName, attributes: wanted }
}

const placesOf = ({ name, id, version }: Group) => ({ group: name, groupId: id, version })

const valuesOf =
  (wanted: Group, before?: Group) =>
  (name: string): readonly string[] => {
    if (name === 'group') return [wanted.name]
    if (name === 'groupId') return before === undefined ? [] : [before.id]
    if (name === 'version') return before?.version === undefined ? [] : [before.version]
    return wanted.attributes?.values(name) ?? []
  }

const tell = (request: TargetRequest, changes: readonly TargetChange[]): void => {
  for (const change of changes) request.audit(change)
}

const taken = (name: string): GatewayError =>
  new GatewayError('CONFLICT', `there is a group "${name}" already`, { keyword: 'uniqueness' })
