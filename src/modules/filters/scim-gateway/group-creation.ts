import { BoundedCache } from '#kernel/bounded-cache.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { GatewayParts } from './gateway-parts.ts'
import {
  displayNameOf,
  findGroup,
  groupKey,
  groupNamed,
  nameKey,
  nameTaken,
  noteChange,
  requireName,
  runGroupWorkflow,
} from './group-changes.ts'
import type { GroupEdit } from './group-edit.ts'
import { type MemberRun, planMembers, runMembers } from './group-members.ts'
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
    // Asked inside the lock, so that of two requests for one name exactly one creates.
    const { found, runs } = await lock.run(nameKey(name), () => this.#make(call, resource, edit))
    await lock.run(groupKey(found.id), () => this.#fill(call, found, runs))
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

  /** The group without its members, which are all known to exist. */
  async #make(
    call: ScimCall,
    resource: JsonObject,
    edit: GroupEdit,
  ): Promise<{ found: FoundGroup; runs: readonly MemberRun[] }> {
    const name = displayNameOf(resource)
    const present = await groupNamed(this.#parts, name)
    const left = this.#unfinished.get(nameKey(name))
    const isLeft = left !== undefined && (left.id === undefined || left.id === present?.id)
    if (present !== undefined && !isLeft) throw nameTaken()
    const runs = await planMembers(this.#parts, present, edit.members)
    if (present !== undefined && left?.id !== undefined) return { found: present, runs }
    return { found: await this.#run(call, name, resource), runs }
  }

  async #run(call: ScimCall, name: string, resource: JsonObject): Promise<FoundGroup> {
    const { config, groupView, lookups, storage } = this.#parts
    const workflow = config.workflows.createGroup
    try {
      const stored = await storage.groups()
      const options = { kind: 'create', ignored: config.ignored } as const
      const kept = storableChange(stored, config.groups.schema, {}, { ...resource }, options)
      const attributes = groupView.attributes.of(kept, stored.unstorable)
      await runGroupWorkflow(this.#parts, call, { name: workflow, attributes, params: { groupname: name } })
    } catch (error) {
      // What a target refused is not there; of what failed otherwise, some targets may have made the group.
      if (!(error instanceof GatewayError) || !error.isRefusal) this.#remember(name, {})
      throw error
    }
    const found = await lookups.groupByName(name)
    if (found !== undefined) return found
    throw new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended, but the group is not there`, {
      publicText: 'The workflow ended without creating the group. Check its tasks, then send the request again.',
    })
  }

  async #fill(call: ScimCall, found: FoundGroup, runs: readonly MemberRun[]): Promise<void> {
    const { id, group } = found
    try {
      await tellingProgress(this.#parts, call, group.name, 1 + runs.length, async (done) => {
        done()
        await runMembers(this.#parts, call, found, runs, done)
      })
      this.#unfinished.delete(nameKey(group.name))
    } catch (error) {
      this.#remember(group.name, { id })
      noteChange(call, { kind: 'create', id, attributes: ['displayName', 'members'] })
      throw error
    }
  }

  #remember(name: string, unfinished: Unfinished): void {
    this.#unfinished.set(nameKey(name), unfinished, new Date(systemClock().getTime() + keepMillis))
  }
}
