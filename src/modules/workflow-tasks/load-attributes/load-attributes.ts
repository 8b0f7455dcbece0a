import { Dn } from '#identity/dn.ts'
import { findInDirectory } from '#modules/shared/tasks/find-workflow-user.ts'
import { list, parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onDirectory } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'

const parameters = {
  name: list({ about: 'The attributes to load; may be repeated.', required: true }),
  nameAttr: text({ about: 'The attribute of the directory with the login.', required: true }),
  base: parsed('distinguished name', (value) => Dn.parse(value), {
    about: 'Where the search begins; the whole directory when absent.',
  }),
}

export default defineCustomTask({
  className: 'tasks.LoadAttributes',
  aliases: ['com.tremolosecurity.provisioning.customTasks.LoadAttributes'],
  parameters,
  parse: (params, issues, context) => {
    const config = readParameters(parameters, params, issues, context)
    return { ...config, places: config.name.map((attribute, i) => ({ attribute, path: params.pathOf('name', i) })) }
  },
  flow: ({ places }) => ({ ...noFlow, produces: places }),
  create: ({ name: names, nameAttr, base = new Dn([]) }, { directory }) =>
    onDirectory(directory, async (people, { user, log }) => {
      const entry = await findInDirectory(people, base, nameAttr, user, 'LoadAttributes')
      if (entry === undefined) log.warn('user is not in the directory', { userID: user.userID })
      for (const name of names) {
        const values = entry?.attributes.values(name) ?? []
        if (values.length > 0) user.attributes.set(name, values)
      }
      return next
    }),
})
