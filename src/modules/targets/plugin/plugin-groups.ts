import type { Group } from '#identity/group.ts'
import type { GroupTarget, Target } from '#sdk/target.ts'
import { readFlag, readGroup, readOptional } from './plugin-answers.ts'
import type { PluginCaller } from './plugin-caller.ts'

export function groupsOf(caller: PluginCaller): Omit<GroupTarget, keyof Target> {
  async function find(name: string): Promise<Group | undefined> {
    if (caller.has('lookupGroupByName')) {
      const group = await caller.ask('lookupGroupByName', [name], readOptional(readGroup))
      return group === undefined ? undefined : { ...group, members: [] }
    }
    return (await caller.ask('isGroupExists', [name], readFlag)) ? { id: name, name, members: [] } : undefined
  }

  return {
    findGroup: find,
    async createGroup(name, attributes, request) {
      if ((await find(name)) !== undefined) return
      await caller.auditing(request).change(
        'addGroup',
        (plain) => [name, attributes, plain],
        () => [{ subject: 'entry', action: 'add', attribute: 'name', value: name }],
      )
    },
    async deleteGroup(name, request) {
      if ((await find(name)) === undefined) return
      await caller.auditing(request).change(
        'deleteGroup',
        (plain) => [name, plain],
        () => [{ subject: 'entry', action: 'delete', attribute: 'name', value: name }],
      )
    },
  }
}
