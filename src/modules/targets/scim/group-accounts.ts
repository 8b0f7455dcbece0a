import { Attributes } from '#identity/attributes.ts'
import { groupChanges, newGroupChanges } from '#identity/entry-changes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { requireVersion } from '#modules/shared/targets/user-reconciler.ts'
import type { GroupChange, TargetChange, TargetRequest } from '#sdk/target.ts'
import type { GroupLookups } from './group-lookups.ts'
import { requiredPath } from './resource-address.ts'
import { unfit } from './resource-mapping.ts'
import { changeRequest, hasCode, isUncertain, newResource, send } from './resource-writer.ts'
import { modelOf, type ScimService } from './service-model.ts'

type Values = Readonly<Record<string, readonly string[]>>

const maxAttempts = 5

/** Groups come, change and go, as users do. SCIM does not promise that their names are unique, so that is looked after here. */
export class GroupAccounts {
  readonly #service: ScimService
  readonly #groups: GroupLookups
  readonly #queue = new KeyedQueue()

  constructor(service: ScimService, groups: GroupLookups) {
    this.#service = service
    this.#groups = groups
  }

  create(name: string, attributes: Values, request: TargetRequest): Promise<void> {
    return this.#inTurn(name, async () => {
      checkName(name)
      const model = await modelOf(this.#service)
      const wanted = Attributes.from(attributes)
      const options = { attributes: wanted.names(), addOnly: false }
      const edits = model.groups.edits({}, wanted, options)
      if (await this.#isThere(name, wanted)) return
      const body = newResource(model.features.groups, { attribute: 'displayName', value: name }, edits)
      try {
        await send(this.#service, { method: 'POST', path: '/Groups', body }, request)
      } catch (error) {
        if (!isUncertain(error) && !hasCode(error, 'CONFLICT')) throw error
        if (!(await this.#isThere(name, wanted))) throw error
        if (hasCode(error, 'CONFLICT')) return
      }
      report(newGroupChanges(name, wanted), request)
    })
  }

  update(name: string, change: GroupChange, request: TargetRequest): Promise<void> {
    const { newName = name, expectedVersion } = change
    return this.#inTurn(name, async () => {
      checkName(newName)
      const model = await modelOf(this.#service)
      const wanted = Attributes.from(change.attributes ?? {})
      const options = { attributes: Object.keys(change.attributes ?? {}), addOnly: false }
      let sent: readonly TargetChange[] | undefined
      for (let attempt = 1; ; attempt++) {
        const stored =
          (await this.#groups.byName(name, !model.features.patch)) ??
          (sent === undefined ? undefined : await this.#groups.byName(newName, !model.features.patch))
        if (stored === undefined) throw new GatewayError('NOT_FOUND', `no group "${name.slice(0, 100)}"`)
        const edits = model.groups.edits(stored.resource, wanted, options)
        const isRenamed = stored.entry.name !== newName
        const nothing = edits.length === 0 && !isRenamed
        if (nothing && (sent !== undefined || expectedVersion === undefined)) break
        requireVersion(stored.entry, expectedVersion)
        if (isRenamed) await this.#requireFree(stored.entry.id, newName)
        sent = groupChanges(stored.entry, newName, Object.entries(change.attributes ?? {}))
        // Nothing but the version is asked about: writing the name anew makes the server compare it.
        const naming = { attribute: 'displayName', value: isRenamed || nothing ? newName : undefined } as const
        const path = requiredPath(this.#service, '/Groups', stored.entry.id)
        const how = { path, model, schema: model.features.groups }
        try {
          await send(this.#service, changeRequest(stored, naming, edits, how), request)
          break
        } catch (error) {
          const lostRace = hasCode(error, 'VERSION_MISMATCH') && expectedVersion === undefined
          if (attempt >= maxAttempts || !(lostRace || (isUncertain(error) && attempt === 1))) throw error
          if (lostRace) sent = undefined
        }
      }
      report(sent ?? [], request)
    })
  }

  delete(name: string, request: TargetRequest, expectedVersion: string | undefined): Promise<void> {
    return this.#inTurn(name, async () => {
      const stored = await this.#groups.byName(name, false)
      if (stored === undefined) return
      requireVersion(stored.entry, expectedVersion)
      const path = requiredPath(this.#service, '/Groups', stored.entry.id)
      try {
        await send(this.#service, { method: 'DELETE', path, ifMatch: expectedVersion }, request)
      } catch (error) {
        if (hasCode(error, 'NOT_FOUND')) return
        if (!isUncertain(error) || (await this.#groups.byName(name, false)) !== undefined) throw error
      }
      report([{ subject: 'entry', action: 'delete', attribute: 'name', value: stored.entry.name }], request)
    })
  }

  #inTurn(name: string, work: () => Promise<void>): Promise<void> {
    return this.#queue.run(name.toLowerCase(), work)
  }

  /** Throws CONFLICT when there is such a group that is not as it should be. */
  async #isThere(name: string, wanted: Attributes): Promise<boolean> {
    const found = await this.#groups.byName(name, false)
    if (found === undefined) return false
    const model = await modelOf(this.#service)
    const options = { attributes: wanted.names(), addOnly: false }
    const isSame = found.entry.name === name && model.groups.edits(found.resource, wanted, options).length === 0
    if (isSame) return true
    throw taken(name)
  }

  async #requireFree(id: string, newName: string): Promise<void> {
    const found = await this.#groups.byName(newName, false)
    if (found !== undefined && found.entry.id !== id) throw taken(newName)
  }
}

function checkName(name: string): void {
  if (name === '' || !name.isWellFormed() || name.includes('\0'))
    throw unfit('displayName', 'it is not the name of a group')
}

const taken = (name: string): GatewayError =>
  new GatewayError('CONFLICT', `there is a group "${name.slice(0, 100)}" already`, { keyword: 'uniqueness' })

function report(changes: readonly TargetChange[], request: TargetRequest): void {
  for (const change of changes) request.audit(change)
}
