import { defineTask, nameTemplate } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { attributeReads, renderTask } from '#adapters/workflow-tasks/shared/task-template.ts'
import { GatewayError } from '#kernel/errors.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { anything, text } from '#sdk/module/parameter-types.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import { defineCustomTask, next, type RequestMap } from '#sdk/workflow/workflow-task.ts'
import { unusedPassword, userValues } from '#sdk/workflow/workflow-user.ts'

/** Tasks that run other tasks, or another workflow. */

export const callWorkflow = defineTask({
  taskType: 'callWorkflow',
  fields: {
    name: text({
      about: 'The workflow whose tasks run next, on the same user and request. Not a template.',
      required: true,
      reference: 'workflow',
    }),
  },
  prepare: ({ name: workflow }) => ({
    calls: workflow === '' ? [] : [workflow],
    create: () => onContext(() => ({ kind: 'call', workflow })),
  }),
})

export const customTask = defineTask({
  taskType: 'customTask',
  fields: {
    className: text({ about: 'The class of the custom task; see the reference of custom tasks.', required: true }),
    secretParams: anything({ about: 'Accepted while empty: parameters from secrets are not read here.' }),
    params: anything({ about: 'Its parameters: a map of texts or lists of texts, or a list of `{name, value}`.' }),
  },
  prepare: ({ className, secretParams, params: given }, { issues, context, pathOf }) => {
    if (Array.isArray(secretParams) ? secretParams.length > 0 : secretParams !== undefined) {
      issues.error(pathOf('secretParams'), 'a task takes no parameters from secrets; give them to its target')
    }
    const params = context.params(given ?? {}, pathOf('params'), issues)
    const module = context.customTasks.find(className)
    if (module !== undefined) return { name: module.className, ...module.prepare(params, issues, context) }
    if (className !== '') issues.error(pathOf('className'), context.customTasks.unknown(className))
    return {
      flow: { ...noFlow, opaque: true, writes: true },
      create: () => {
        throw new Error(context.customTasks.unknown(className))
      },
    }
  },
})

/** Starts another workflow for the same user. It runs independently, after this step is committed. */
export const asyncCallWorkflow = defineCustomTask({
  className: 'tasks.AsyncCallWorkflow',
  aliases: ['com.tremolosecurity.provisioning.customTasks.AsyncCallWorkflow'],
  parameters: {
    workflowName: nameTemplate({
      about: 'The workflow to start; `$key$` is a value of the request.',
      required: true,
    }),
    uidAttributeName: text({
      about: 'The attribute that holds the login of the user it is about; `TREMOLO_USER_ID` is the login of this user.',
      required: true,
    }),
    workflowReason: nameTemplate({
      about: 'The reason that is recorded; `$key$` is a value of the request. The reason of this run when absent.',
    }),
  },
  prepare: ({ workflowName, uidAttributeName, workflowReason }, { context, pathOf }) => {
    const isFixed = workflowName.keys.length === 0
    if (isFixed && workflowName.text !== '') context.refer('workflow', workflowName.text, pathOf('workflowName'))
    const reads = attributeReads(uidAttributeName, pathOf('uidAttributeName'))
    return {
      // The workflow that it starts gets every attribute.
      flow: {
        ...noFlow,
        mayRead: 'any',
        starts: isFixed ? [workflowName.text] : 'any',
        ...(reads.length === 0 ? {} : { reads, loginReads: [uidAttributeName] }),
      },
      create: () =>
        onContext((task) => {
          const { user, request, run, effects } = task
          const name = renderTask(workflowName, task)
          const [userID] = userValues(user, uidAttributeName)
          if (name === '') throw new GatewayError('WORKFLOW_FAILED', 'AsyncCallWorkflow: the workflow has no name')
          if (userID === undefined || userID === '') {
            throw new GatewayError('WORKFLOW_FAILED', `AsyncCallWorkflow: the user has no "${uidAttributeName}"`)
          }
          const password = unusedPassword(user)
          const reason = workflowReason.text === '' ? user.requestReason : renderTask(workflowReason, task)
          effects.start({
            head: { workflow: name, requester: run.requester, reason },
            asynchronous: true,
            user: { userID, attributes: user.attributes.clone(), groups: [...user.groups] },
            params: passedOn(request),
            ...(user.keepGroups ? { keepGroups: true } : {}),
            password,
          })
          return next
        }),
    }
  },
})

/** The request's parameters, without those that steer this run. */
function passedOn(request: RequestMap): Record<string, string> {
  const passed: Record<string, string> = Object.create(null)
  for (const [key, value] of request) {
    if (!isEngineKey(key) && typeof value === 'string') passed[key] = value
  }
  return passed
}
