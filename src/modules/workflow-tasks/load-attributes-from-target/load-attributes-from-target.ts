import { userIdName } from '#identity/mapping/mapped-value.ts'
import { findInTarget } from '#modules/shared/tasks/find-workflow-user.ts'
import { list, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { noteVersion } from '#sdk/workflow/workflow-user.ts'

const parameters = {
  target: text({ about: 'The target the attributes are loaded from.', required: true, reference: 'target' }),
  nameAttr: text({
    about: 'The attribute whose first value is the name in the target; the login if the user has none.',
    required: true,
  }),
  name: list({ about: 'The attributes to load; may be repeated.' }),
  attributes: list({ about: 'The same as `name`, as OpenUnison spells it here.' }),
}

export default defineCustomTask({
  className: 'tasks.LoadAttributesFromTarget',
  aliases: ['com.tremolosecurity.provisioning.customTasks.LoadAttributesFromTarget'],
  parameters,
  parse: (params, issues, context) => {
    const config = readParameters(parameters, params, issues, context)
    const places = (['name', 'attributes'] as const).flatMap((parameter) =>
      config[parameter].map((attribute, i) => ({ attribute, path: params.pathOf(parameter, i) })),
    )
    if (places.length === 0) issues.error(params.pathOf('name'), 'parameter "name" is required')
    return { ...config, places, nameAttrPath: params.pathOf('nameAttr') }
  },
  flow: ({ places, nameAttr, nameAttrPath }) => ({
    ...noFlow,
    reads: nameAttr === userIdName ? [] : [{ attribute: nameAttr, path: nameAttrPath }],
    loginReads: nameAttr === userIdName ? [] : [nameAttr],
    produces: places,
  }),
  create: ({ target: targetName, nameAttr, places }, { targets }) => {
    const names = places.map(({ attribute }) => attribute)
    return onTarget(targetName, targets.get(targetName), async (target, { user, log, forTarget }) => {
      const found = await findInTarget(target, user, nameAttr, names, forTarget(targetName))
      noteVersion(user, targetName, found)
      if (found === undefined) log.warn('user is not in the target', { userID: user.userID, target: targetName })
      for (const name of names) {
        const values = found?.attributes.values(name) ?? []
        if (values.length > 0) user.attributes.set(name, values)
      }
      return next
    })
  },
})
