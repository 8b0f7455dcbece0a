import { Attributes } from '#identity/attributes.ts'
import { groupChanges, newGroupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { requireVersion } from '#modules/shared/targets/user-reconciler.ts'
import type { GroupTarget, Target } from '#sdk/target.ts'
import { readFlag, readGroup, readOptional } from './plugin-answers.ts'
import type { PluginCaller } from './plugin-caller.ts'

/** Each change reads the group first, and changes to one group follow one another, as those to a user do. */
export function groupsOf(caller: PluginCaller): Omit<GroupTarget, keyof Target> {
  const queue = new KeyedQueue()

  async function find(name: string): Promise<Group | undefined> {
    if (caller.has('lookupGroupByName')) {
      const group = await caller.ask('lookupGroupByName', [name], readOptional(readGroup))
      return group === undefined ? undefined : { ...group, members: [] }
    }
    return (await caller.ask('isGroupExists', [name], readFlag)) ? { id: name, name, members: [] } : undefined
  }

  return {
    findGroup: find,
    createGroup: (name, attributes, request) =>
      queue.run(name, async () => {
        const before = await find(name)
        const wanted = Attributes.from(attributes)
        if (before !== undefined) {
          if (groupChanges(before, name, wanted).length === 0) return
          throw new GatewayError('CONFLICT', `there is a group "${name}" with other attributes`, {
            keyword: 'uniqueness',
          })
        }
        await caller.auditing(request).change(
          'addGroup',
          (plain) => [name, wanted.toObject(), plain],
          () => newGroupChanges(name, wanted),
        )
      }),
    updateGroup: (name, { newName = name, attributes = {}, expectedVersion }, request) =>
      queue.run(name, async () => {
        const before = await find(name)
        if (before === undefined) throw new GatewayError('NOT_FOUND', `no group "${name}"`)
        requireVersion(before, expectedVersion)
        const changes = groupChanges(before, newName, new Map(Object.entries(attributes)))
        if (changes.length === 0) return
        if (!caller.has('updateGroup')) {
          throw new GatewayError('NOT_SUPPORTED', 'the plug-in has no function updateGroup')
        }
        if (newName.toLowerCase() !== name.toLowerCase() && (await find(newName)) !== undefined) {
          throw new GatewayError('CONFLICT', `there is a group "${newName}" already`, { keyword: 'uniqueness' })
        }
        await caller.auditing(request).change(
          'updateGroup',
          (plain) => [name, newName, attributes, plain],
          () => changes,
        )
      }),
    deleteGroup: (name, request, options) =>
      queue.run(name, async () => {
        const before = await find(name)
        if (before === undefined) return
        requireVersion(before, options?.expectedVersion)
        await caller.auditing(request).change(
          'deleteGroup',
          (plain) => [name, plain],
          () => [{ subject: 'entry', action: 'delete', attribute: 'name', value: name }],
        )
      }),
  }
}
