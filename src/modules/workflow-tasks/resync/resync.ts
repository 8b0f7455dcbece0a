import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { findInDirectory } from '#modules/shared/tasks/find-workflow-user.ts'
import { defineTask } from '#modules/shared/tasks/task-fields.ts'
import { flag, text } from '#sdk/module/parameter-types.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onDirectory } from '#sdk/workflow/preview.ts'
import { next } from '#sdk/workflow/workflow-task.ts'
import { setGroups } from '#sdk/workflow/workflow-user.ts'

const fields = {
  keepExternalAttrs: flag({
    about: '`true` keeps attributes that the directory does not have; `false` when absent.',
  }),
  changeRoot: flag({ about: '`true` finds the user below `newRoot`; `false` when absent.' }),
  newRoot: text({
    about: 'Where in the directory to look; the whole directory when `changeRoot` is not `true`.',
    fallback: '',
  }),
}

/** Attributes of entries about the directory, not about the user. */
const directoryAttributes = ['memberOf', 'objectClass']

export default defineTask({
  taskType: 'resync',
  fields,
  branches: false,
  prepare: ({ keepExternalAttrs: keepExternal, changeRoot, newRoot }, { issues, pathOf }) => {
    if (changeRoot && newRoot === '') issues.error(pathOf('newRoot'), '"newRoot" is required')
    let base = new Dn([])
    try {
      if (changeRoot) base = Dn.parse(newRoot)
    } catch (error) {
      issues.error(pathOf('newRoot'), error instanceof Error ? error.message : String(error))
    }
    return {
      // The attributes of the directory are not known in advance.
      flow: { ...noFlow, opaque: true },
      create: async ({ directory }) =>
        onDirectory(directory, async (people, { user }) => {
          const entry = await findInDirectory(people, base, 'uid', user, 'resync')
          if (entry === undefined) {
            throw new GatewayError('WORKFLOW_FAILED', `resync: "${user.userID}" is not in the directory`)
          }
          const loaded = keepExternal ? user.attributes.clone() : new Attributes()
          for (const [name, values] of entry.attributes) loaded.set(name, values)
          const groups = entry.attributes.values('memberOf')
          for (const name of directoryAttributes) loaded.delete(name)
          user.attributes = loaded
          setGroups(user, groups.map(groupName))
          return next
        }),
    }
  },
})

/** A group's name is the first part of its DN. */
function groupName(dn: string): string {
  return Dn.parse(dn).rdns[0]?.[0]?.value ?? dn
}
