import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseTemplate } from '#kernel/template.ts'
import { auditedCall } from '#modules/shared/tasks/audited-call.ts'
import { renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { parsed } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { Target, TargetRequest } from '#sdk/target/target.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { defineCustomTask, next, type TaskContext, type TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'

const template = (text: string) => parseTemplate(text, { keys: true, attributes: true })

const parameters = {
  target: parsed('template', template, {
    about: 'The target in which access is revoked; a template.',
    required: true,
  }),
  kind: parsed('template', template, {
    about: '`group` removes the user from a group, `user` deletes the user; a template.',
    required: true,
  }),
  name: parsed('template', template, {
    about: 'The group; for a user the login, which must be that of the run. A template.',
    required: true,
  }),
}

const names = ['target', 'kind', 'name'] as const

/** How often the target is read again because another writer changed the user meanwhile. */
const maxAttempts = 3

/** Works on the target's own data, by the login there: no mapping is applied, and no user is created. */
export default defineCustomTask({
  className: 'tasks.RevokeAccess',
  parameters,
  parse: (params, issues, context) => ({
    ...readParameters(parameters, params, issues, context),
    path: (name: string) => params.pathOf(name),
  }),
  flow: ({ path, ...templates }) => ({
    ...noFlow,
    reads: names.flatMap((name) => {
      const own = templates[name]
      return own === undefined ? [] : templateReads(own, path(name))
    }),
  }),
  create: ({ path: _, ...templates }, { targets }) => {
    const revoke = async (targetOf: (name: string) => Target, context: TaskContext): Promise<TaskOutcome> => {
      const [targetName, kind, name] = names.map((field) => {
        const own = templates[field]
        const value = own === undefined ? '' : renderTask(own, context).trim()
        if (value === '') throw new GatewayError('WORKFLOW_FAILED', `RevokeAccess: "${field}" is empty`)
        return value
      }) as [string, string, string]
      const { userID } = context.user
      const target = targetOf(targetName)
      const request = context.forTarget(targetName)
      if (kind === 'group') await leaveGroup(target, userID, name, request)
      else if (kind === 'user' && sameLogin(name, userID)) await deleteUser(target, userID, request)
      else throw new GatewayError('WORKFLOW_FAILED', `RevokeAccess: "${kind}" of "${name}" cannot be taken back`)
      return next
    }
    return {
      run: (context) => revoke((name) => targets.get(name), context),
      preview: (context) => revoke((name) => context.target(name), context),
    }
  },
})

async function leaveGroup(target: Target, userID: string, group: string, request: TargetRequest): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const found = await target.findUser(userID, [], request)
    const held = found?.groups.find((name) => name.toLowerCase() === group.toLowerCase())
    if (found === undefined || held === undefined) return
    try {
      await withoutGroup(target, found, held, request)
      return
    } catch (error) {
      const lost = error instanceof GatewayError && (error.code === 'VERSION_MISMATCH' || error.code === 'NOT_FOUND')
      if (!lost || attempt >= maxAttempts) throw error
    }
  }
}

/** The other memberships come from this read, which is valid only while no one else writes. */
function withoutGroup(target: Target, found: User, group: string, request: TargetRequest): Promise<void> {
  const { userID, version } = found
  const groups = found.groups.filter((name) => name !== group)
  const options = {
    addOnly: false,
    attributes: [],
    keepGroups: false,
    ...(version === undefined ? {} : { expectedVersion: version }),
  }
  return auditedCall(
    request,
    () => [{ subject: 'group', action: 'delete', attribute: 'groups', value: group }],
    (audited) => target.syncUser({ userID, attributes: new Attributes(), groups }, options, audited),
  )
}

async function deleteUser(target: Target, userID: string, request: TargetRequest): Promise<void> {
  const found = await target.findUser(userID, [], request)
  if (found === undefined) return
  await auditedCall(
    request,
    () => [{ subject: 'entry', action: 'delete', attribute: 'userID', value: found.userID }],
    (audited) => target.deleteUser(found, audited),
  )
}
