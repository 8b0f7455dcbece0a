import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { JsonObject } from '#kernel/json.ts'
import { applyPatch, changedAttributes } from '#protocols/scim/patch/apply-patch.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { internalName } from '#protocols/scim/resource-schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import { requireMatch } from './conditional.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { GroupEdit } from './group-edit.ts'
import { type MemberRun, planMembers, runMembers } from './group-members.ts'
import { groupKey, runGroupWorkflow } from './group-workflow.ts'
import type { FoundGroup } from './lookups.ts'
import { tellingProgress } from './partial-failure.ts'
import { addChange, notFound, type ResourceChange, type ScimCall } from './scim-call.ts'
import { requireEffect, storableChange } from './unstored-change.ts'
import { clearedIn, externalIdOf, versionOf } from './user-writer.ts'

export async function findGroup({ lookups }: GatewayParts, id: string, members: boolean): Promise<FoundGroup> {
  const found = await lookups.groupById(id, members)
  if (found === undefined) throw notFound('group', id)
  return found
}

/**
 * Brings the group to what the edit says: all of it is checked, then the group itself is changed, then its members, one
 * run each, under the name that the group then has. Changes of one group happen one after the other. Gives the group as
 * the target then holds it.
 */
export function changeGroup(
  parts: GatewayParts,
  call: ScimCall,
  edit: GroupEdit,
  withMembers: boolean,
): Promise<FoundGroup> {
  return parts.lock.run(groupKey(parts.lookups.ids.groupForm(call.id)), async () => {
    const found = await findGroup(parts, call.id, false)
    const version = requireMatch(call, found.group.version)
    const { resource, own } = await planOwn(parts, call, found, edit)
    const runs = await planMembers(parts, found, edit.members)
    const name = own?.newName ?? found.group.name
    const changed = [...(own?.changed ?? []), ...(runs.length > 0 ? ['members'] : [])]
    const cleared = own?.emptied ?? []
    const change = { kind: edit.kind, attributes: changed, cleared, ...externalIdOf(resource) }
    const { updateGroup } = parts.config.workflows
    let some = false
    try {
      await tellingProgress(parts, call, name, (own === undefined ? 0 : 1) + runs.length, async (done) => {
        const tick = (): void => {
          some = true
          done()
        }
        // Without a change of its own, the group takes part so that the version is compared where it is kept.
        if (own !== undefined || (version !== undefined && runs.length > 0 && updateGroup !== undefined)) {
          await runUpdate(parts, call, found, own, version)
          if (own !== undefined) tick()
        }
        const named = name === found.group.name ? found : { ...found, group: { ...found.group, name } }
        await runMembers(parts, call, named, runs, tick)
      })
    } catch (error) {
      if (some) noteChange(call, { ...change, id: found.id })
      throw error
    }
    const { groupIdIsName, ids } = parts.lookups
    const after = await findGroup(parts, groupIdIsName ? ids.ofGroup(name) : found.id, withMembers)
    if (own !== undefined) await requireGroupEffect(parts, call, found, after, resource)
    if (some) {
      const members = call.notes.pending === undefined ? { members: membersOf(runs) } : {}
      noteChange(call, { ...change, ...members, id: after.id, ...versionOf(after.group.version) })
    }
    return after
  })
}

/** Who joined and who left, for events. */
function membersOf(runs: readonly MemberRun[]): NonNullable<ResourceChange['members']> {
  const ofRuns = (removed: boolean) =>
    runs
      .filter(({ remove }) => remove === removed)
      .map((run) =>
        'member' in run
          ? ({ type: 'User', id: run.member.id } as const)
          : ({ type: 'Group', id: run.memberGroup.id } as const),
      )
  return { added: ofRuns(false), removed: ofRuns(true) }
}

/** Throws WORKFLOW_FAILED where the group is still what it was. */
async function requireGroupEffect(
  { config, groupView, storage }: GatewayParts,
  { base }: ScimCall,
  found: FoundGroup,
  changed: FoundGroup,
  wanted: JsonObject,
): Promise<void> {
  const before = await groupView.resource(found, base, false)
  const after = await groupView.resource(changed, base, false)
  const held = {
    before: found.group.attributes ?? new Attributes(),
    after: changed.group.attributes ?? new Attributes(),
  }
  const workflow = config.workflows.updateGroup ?? ''
  requireEffect(await storage.groups(), config.groups.schema, workflow, { before, wanted, after, held })
}

interface OwnChange {
  readonly name: string
  /** The same, where it is another one that workflows know the group by. */
  readonly newName: string | undefined
  readonly attributes: Attributes
  readonly cleared: readonly string[]
  /** The SCIM attributes that change. */
  readonly changed: readonly string[]
  /** Those of them that have no value any more. */
  readonly emptied: readonly string[]
}

/** The group as it is to be, without members, and what of it changes; nothing when it is all there already. */
async function planOwn(
  parts: GatewayParts,
  call: ScimCall,
  found: FoundGroup,
  edit: GroupEdit,
): Promise<{ readonly resource: ScimResource; readonly own?: OwnChange }> {
  const { config, groupView, storage } = parts
  const { schema } = config.groups
  const before = await groupView.resource(found, call.base, false)
  const patched = applyPatch(schema, before, edit.own, { strict: config.client.strict }).resource
  const { ignored } = config
  const stored = await storage.groups()
  const resource = storableChange(stored, schema, before, patched, { kind: edit.kind, ignored })
  const held = found.group.attributes ?? new Attributes()
  const change = groupView.attributes.change(held, before, resource, stored.unstorable)
  const name = displayNameOf(resource)
  const renamed = name !== displayNameOf(before)
  if (!renamed && change === undefined) return { resource }
  if (config.workflows.updateGroup === undefined) {
    throw scimError(
      'mutability',
      'The name and attributes of groups cannot be changed: this gateway has no groupUpdateWorkflow.',
    )
  }
  const newName = renamed && groupView.attributes.displayed === undefined ? name : undefined
  if (newName !== undefined) requireRenaming(parts, newName, found)
  if (renamed) {
    requireName(name)
    await requireFreeName(parts, name, found)
  }
  const refs = changedAttributes(schema, before, resource)
  const own = {
    name,
    newName,
    attributes: change?.attributes ?? new Attributes(),
    cleared: change?.cleared ?? [],
    changed: refs.map(internalName),
    emptied: clearedIn(resource, refs),
  }
  return { resource, own }
}

export const displayNameOf = (resource: JsonObject): string => String(resource['displayName'] ?? '')

/** Throws invalidValue for a name that says nothing. */
export function requireName(name: string): void {
  if (name.trim() === '') throw scimError('invalidValue', 'displayName must not be blank. Send a name.')
}

/** Throws mutability where names are ids; another letter case leaves the id what it is. */
function requireRenaming({ lookups }: GatewayParts, name: string, { group }: FoundGroup): void {
  if (!lookups.groupIdIsName || name.toLowerCase() === group.name.toLowerCase()) return
  throw scimError(
    'mutability',
    'displayName cannot be changed: it is the id of the group here. Create another group instead.',
  )
}

/** Throws uniqueness where another group has the name, whatever its letter case. */
async function requireFreeName(parts: GatewayParts, name: string, { id }: FoundGroup): Promise<void> {
  if (parts.config.groups.sharesNames) return
  const holder = await groupNamed(parts, name)
  if (holder !== undefined && holder.id.toLowerCase() !== id.toLowerCase()) throw nameTaken()
}

export const nameTaken = () =>
  scimError(
    'uniqueness',
    'displayName: another group has this name, in this or another letter case. Choose another one, or change that group.',
  )

/** The group that has or shows the name, in any letter case. */
export async function groupNamed({ lookups }: GatewayParts, name: string): Promise<FoundGroup | undefined> {
  const byName = await lookups.groupByName(name)
  if (byName !== undefined) return byName
  const filters = lookups.names.groupName.map((attribute): Filter => ({ kind: 'equal', attribute, value: name }))
  const [only] = filters
  const filter = filters.length === 1 && only !== undefined ? only : ({ kind: 'or', filters } as const)
  return (await lookups.searchGroups({ filter, offset: 0, limit: 1 })).items[0]
}

async function runUpdate(
  parts: GatewayParts,
  call: ScimCall,
  found: FoundGroup,
  own: OwnChange | undefined,
  version: string | undefined,
): Promise<void> {
  const { group } = found
  const run = (): Promise<void> =>
    runGroupWorkflow(parts, call, {
      name: parts.config.workflows.updateGroup,
      attributes: own?.attributes ?? new Attributes(),
      cleared: own?.cleared ?? [],
      params: {
        groupname: group.name,
        newgroupname: own?.newName ?? group.name,
        groupid: group.id,
        ...(version === undefined ? {} : { groupversion: version }),
      },
    })
  if (own === undefined) return run()
  // Asked again inside the lock, so that of two who want one name exactly one gets it.
  await parts.lock.within(nameKey(own.name), async () => {
    await requireFreeName(parts, own.name, found)
    await run()
  })
}

export const nameKey = (name: string): string => `groupname ${name.toLowerCase()}`

export function noteChange(call: ScimCall, change: Omit<ResourceChange, 'resourceType'>): void {
  addChange(call, { resourceType: 'Group', ...change })
}
