import { randomBytes } from 'node:crypto'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { noVersion } from '#sdk/workflow.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { displayNameOf, findGroup, groupNamed, nameKey, nameTaken, noteChange, requireName } from './group-changes.ts'
import type { GroupEdit } from './group-edit.ts'
import { type MemberRun, planMembers, runMembers } from './group-members.ts'
import { groupKey, runGroupWorkflow } from './group-workflow.ts'
import type { FoundGroup } from './lookups.ts'
import { tellingProgress } from './partial-failure.ts'
import { requireAddress } from './resource-address.ts'
import { notSupported, type ScimCall } from './scim-call.ts'
import { storableChange } from './unstored-change.ts'
import { externalIdOf, versionOf } from './user-writer.ts'

/** How long, and for how many groups, a creation that failed part way can be taken up again. */
const keepMillis = 60 * 60 * 1000
const maxUnfinished = 1000

/** A group whose creation failed part way. Its id is known where only members are missing. */
interface Unfinished {
  readonly id?: string
}

/**
 * Creates groups. A creation that fails part way is remembered, so that the same request again completes it instead of
 * being told that the name is taken.
 */
export class GroupCreation {
  readonly #parts: GatewayParts
  readonly #unfinished = new BoundedCache<Unfinished>(maxUnfinished, systemClock)

  constructor(parts: GatewayParts) {
    this.#parts = parts
  }

  /** Gives the group as the target then holds it. */
  async create(call: ScimCall, resource: JsonObject, edit: GroupEdit, withMembers: boolean): Promise<FoundGroup> {
    const { config, lock } = this.#parts
    if (config.workflows.createGroup === undefined)
      throw notSupported('Groups cannot be created: this gateway has no groupCreateWorkflow.')
    const name = displayNameOf(resource)
    requireName(name)
    if (this.#parts.lookups.groupIdIsName) requireAddress('displayName', name)
    const key = this.#keyOf(resource)
    // Asked inside the lock, so that of two requests for one name exactly one creates.
    const { found, runs } = await lock.run(key, () => this.#make(call, resource, edit, key))
    await lock.run(groupKey(found.id), () => this.#fill(call, found, runs, key))
    const after = await findGroup(this.#parts, found.id, withMembers)
    noteChange(call, {
      kind: 'create',
      id: found.id,
      attributes: Object.keys(resource),
      ...externalIdOf(resource),
      ...versionOf(after.group.version),
    })
    return after
  }

  /** What makes two requests the same: the name, or where names are shared all that is sent beside the members. */
  #keyOf(resource: JsonObject): string {
    const { members: _, ...own } = resource
    return nameKey(this.#parts.config.groups.sharesNames ? JSON.stringify(own) : displayNameOf(resource))
  }

  /** The group without its members, which are all known to exist. */
  async #make(
    call: ScimCall,
    resource: JsonObject,
    edit: GroupEdit,
    key: string,
  ): Promise<{ found: FoundGroup; runs: readonly MemberRun[] }> {
    const { config, lookups } = this.#parts
    const left = this.#unfinished.get(key)
    if (config.groups.sharesNames) {
      const present = left?.id === undefined ? undefined : await lookups.groupById(left.id, false)
      const runs = await planMembers(this.#parts, present, edit.members)
      return { found: present ?? (await this.#createShared(call, resource, key)), runs }
    }
    const name = displayNameOf(resource)
    const present = await groupNamed(this.#parts, name)
    const isLeft = left !== undefined && (left.id === undefined || left.id === present?.id)
    if (present !== undefined && !isLeft) throw nameTaken()
    const runs = await planMembers(this.#parts, present, edit.members)
    if (present !== undefined && left?.id !== undefined) return { found: present, runs }
    return { found: await this.#run(call, name, resource, key, left === undefined), runs }
  }

  /** Under the displayName itself, or, where a group has that name, under it and a mark of its own. */
  async #createShared(call: ScimCall, resource: JsonObject, key: string): Promise<FoundGroup> {
    const name = displayNameOf(resource)
    const marked = (): string => `${name} (${randomBytes(4).toString('hex')})`
    if ((await this.#parts.lookups.groupByName(name)) === undefined) {
      try {
        return await this.#run(call, name, resource, key, true)
      } catch (error) {
        // Another process was faster.
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      }
    }
    return this.#run(call, marked(), resource, key, true)
  }

  /** `isNew`: bound to there being no such group, so that even another process cannot come between. */
  async #run(call: ScimCall, name: string, resource: JsonObject, key: string, isNew: boolean): Promise<FoundGroup> {
    const { config, groupView, lookups, storage } = this.#parts
    const workflow = config.workflows.createGroup
    try {
      const stored = await storage.groups()
      const options = { kind: 'create', ignored: config.ignored } as const
      const kept = storableChange(stored, config.groups.schema, {}, { ...resource }, options)
      const attributes = groupView.attributes.of(kept, stored.unstorable)
      const params = { groupname: name, ...(isNew ? { groupversion: noVersion } : {}) }
      await runGroupWorkflow(this.#parts, call, { name: workflow, attributes, params })
    } catch (error) {
      // What a target refused is not there; of what failed otherwise, some targets may have made the group.
      if (!(error instanceof GatewayError) || !error.isRefusal) this.#remember(key, {})
      throw error
    }
    const found = await lookups.groupByName(name)
    if (found !== undefined) return found
    throw new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended, but the group is not there`, {
      publicText: 'The workflow ended without creating the group. Check its tasks, then send the request again.',
    })
  }

  async #fill(call: ScimCall, found: FoundGroup, runs: readonly MemberRun[], key: string): Promise<void> {
    const { id, group } = found
    try {
      await tellingProgress(this.#parts, call, group.name, 1 + runs.length, async (done) => {
        done()
        await runMembers(this.#parts, call, found, runs, done)
      })
      this.#unfinished.delete(key)
    } catch (error) {
      this.#remember(key, { id })
      noteChange(call, { kind: 'create', id, attributes: ['displayName', 'members'] })
      throw error
    }
  }

  #remember(key: string, unfinished: Unfinished): void {
    this.#unfinished.set(key, unfinished, new Date(systemClock().getTime() + keepMillis))
  }
}
