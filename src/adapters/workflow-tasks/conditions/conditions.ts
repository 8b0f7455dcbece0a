import { findInTarget } from '#adapters/workflow-tasks/shared/find-workflow-user.ts'
import { defineTask, nameTemplate, template } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { attributeReads, renderTask, templateReads } from '#adapters/workflow-tasks/shared/task-template.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { onContext, onTarget } from '#sdk/workflow/preview.ts'
import type { TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import { userValues } from '#sdk/workflow/workflow-user.ts'

/** Tasks that choose between their subtasks. */

const branchIf = (holds: boolean): TaskOutcome => ({ kind: 'branch', branch: holds ? 'onSuccess' : 'onFailure' })

/** A check for an attribute's presence is not a read, so the data-flow check does not warn. */
export const ifAttrExists = defineTask({
  taskType: 'ifAttrExists',
  fields: { name: nameTemplate({ about: 'The attribute; `$key$` is replaced.', required: true }) },
  branches: true,
  prepare: ({ name }) => ({
    flow: { ...noFlow, mayRead: name.keys.length === 0 && name.attributes.length === 0 ? [name.text] : 'any' },
    create: () => onContext((context) => branchIf(userValues(context.user, renderTask(name, context)).length > 0)),
  }),
})

export const ifAttrHasValue = defineTask({
  taskType: 'ifAttrHasValue',
  fields: {
    name: nameTemplate({ about: 'The attribute; `$key$` is replaced.', required: true }),
    value: template({
      about: 'One of its values must be exactly this; a template. An empty text also matches an absent attribute.',
      required: true,
      mayBeEmpty: true,
    }),
  },
  branches: true,
  prepare: ({ name, value }, { pathOf }) => {
    const reads = name.keys.length === 0 ? attributeReads(name.text, pathOf('name')) : []
    return {
      flow: { ...noFlow, reads: [...reads, ...templateReads(value, pathOf('value'))] },
      create: () =>
        onContext((context) => {
          const values = userValues(context.user, renderTask(name, context))
          const isAbsent = value.text === '' && values.length === 0
          return branchIf(isAbsent || values.includes(renderTask(value, context)))
        }),
    }
  },
})

export const ifNotUserExists = defineTask({
  taskType: 'ifNotUserExists',
  fields: {
    target: text({ about: 'The target to query.', required: true, reference: 'target' }),
    uidAttribute: text({
      about: 'The attribute whose first value is the name to find; the login if the user has none.',
      required: true,
    }),
  },
  branches: true,
  prepare: ({ target: name, uidAttribute }, { pathOf }) => ({
    flow: { ...noFlow, reads: attributeReads(uidAttribute, pathOf('uidAttribute')) },
    create: ({ targets }) =>
      onTarget(name, targets.get(name), async (target, { user, forTarget }) =>
        branchIf((await findInTarget(target, user, uidAttribute, [], forTarget(name))) === undefined),
      ),
  }),
})
