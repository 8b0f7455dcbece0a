import { userIdName } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseTemplate } from '#kernel/template.ts'
import { renderTask } from '#modules/shared/tasks/task-template.ts'
import { parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import { defineCustomTask, next, type RequestMap } from '#sdk/workflow/workflow-task.ts'
import { userValues } from '#sdk/workflow/workflow-user.ts'

const requestTemplate = (value: string) => parseTemplate(value, { keys: true, attributes: false })

const parameters = {
  workflowName: parsed('template', requestTemplate, {
    about: 'The workflow to start; `$key$` is a value of the request.',
    required: true,
  }),
  uidAttributeName: text({
    about: 'The attribute that holds the login of the user it is about; `TREMOLO_USER_ID` is the login of this user.',
    required: true,
  }),
  workflowReason: parsed('template', requestTemplate, {
    about: 'The reason that is recorded; `$key$` is a value of the request. The reason of this run when absent.',
  }),
}

const constant = requestTemplate('')

/** The workflow that it starts gets every attribute. */
const passesAll = { ...noFlow, mayRead: 'any' } as const

/** Starts another workflow for the same user. It runs independently, after this step is committed. */
export default defineCustomTask({
  className: 'tasks.AsyncCallWorkflow',
  aliases: ['com.tremolosecurity.provisioning.customTasks.AsyncCallWorkflow'],
  parameters,
  parse: (params, issues, context) => {
    const config = readParameters(parameters, params, issues, context)
    const { workflowName } = config
    if (workflowName !== undefined && workflowName.keys.length === 0) {
      context.refer('workflow', workflowName.text, params.pathOf('workflowName'))
    }
    return { ...config, at: params.pathOf('uidAttributeName') }
  },
  flow: ({ workflowName = constant, uidAttributeName, at }) => ({
    ...passesAll,
    starts: workflowName.keys.length > 0 ? 'any' : [workflowName.text],
    ...(uidAttributeName === userIdName
      ? {}
      : { reads: [{ attribute: uidAttributeName, path: at }], loginReads: [uidAttributeName] }),
  }),
  create: ({ workflowName = constant, uidAttributeName, workflowReason }) =>
    onContext((task) => {
      const { user, request, requestor, effects } = task
      const name = renderTask(workflowName, task)
      const [userID] = userValues(user, uidAttributeName)
      if (name === '') throw new GatewayError('WORKFLOW_FAILED', 'AsyncCallWorkflow: the workflow has no name')
      if (userID === undefined || userID === '') {
        throw new GatewayError('WORKFLOW_FAILED', `AsyncCallWorkflow: the user has no "${uidAttributeName}"`)
      }
      const reason = workflowReason === undefined ? user.requestReason : renderTask(workflowReason, task)
      effects.start({
        name,
        requestor,
        asynchronous: true,
        user: { userID, attributes: user.attributes.clone(), groups: [...user.groups] },
        params: passedOn(request),
        ...(user.keepGroups ? { keepGroups: true } : {}),
        ...(reason === undefined ? {} : { reason }),
        ...(user.password === undefined ? {} : { password: user.password }),
      })
      return next
    }),
})

/** The request's parameters, without those that steer this run. */
function passedOn(request: RequestMap): Record<string, string> {
  const passed: Record<string, string> = Object.create(null)
  for (const [key, value] of request) {
    if (!isEngineKey(key) && typeof value === 'string') passed[key] = value
  }
  return passed
}
