import { nameTemplate } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderGroupName } from '#adapters/workflow-tasks/shared/task-template.ts'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry, MemberDirectory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { parsed, text } from '#sdk/module/parameter-types.ts'
import { hasGroups, hasLookups } from '#sdk/target/target.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import {
  defineCustomTask,
  next,
  type RequestMap,
  type TaskContext,
  type TaskPlan,
  type WorkflowUser,
} from '#sdk/workflow/workflow-task.ts'

/** Tasks about the members of a group of the directory. */

const uidAttributeName = text({
  about: 'The attribute of a member that holds the login. A member without it is skipped, and the log says so.',
  required: true,
})
const requestor = text({ about: 'Not used: the requester of the run is recorded.' })

/** Runs a workflow for each member of one group, as a user who is to be a member of another one. */
export const copyGroupMembers = defineCustomTask({
  className: 'tasks.CopyGroupMembers',
  aliases: [
    'com.tremolosecurity.provisioning.tasks.CopyGroupMembers',
    'com.tremolosecurity.provisioning.customTasks.CopyGroupMembers',
  ],
  parameters: {
    copyFrom: parsed('distinguished name', parseDnTemplate, {
      about: 'The group in the virtual directory; `$key$` in a value is a value of the request.',
      required: true,
    }),
    copyTo: nameTemplate({ about: 'The name of the other group; `$key$` is a value of the request.', required: true }),
    copyWorkflow: text({
      about: 'The workflow that runs for each member, one after the other. Its user has the login and this group.',
      required: true,
      reference: 'workflow',
    }),
    uidAttributeName,
    requestor,
  },
  prepare: ({ copyFrom, copyTo, copyWorkflow, uidAttributeName }) =>
    forEachMember({
      workflow: copyWorkflow,
      uidAttribute: uidAttributeName,
      group: copyFrom,
      begin: (_, context) => renderGroupName(copyTo, context),
      user: (user, group) => ({ ...user, groups: [group] }),
    }),
})

const removedGroup = 'openunison_grouptoremove'

/** Runs a workflow for each member of a group, which removes the member from it. */
export const deleteGroupMembers = defineCustomTask({
  className: 'tasks.DeleteGroupMembers',
  aliases: ['com.tremolosecurity.provisioning.customTasks.DeleteGroupMembers'],
  parameters: {
    groupToDelete: parsed('distinguished name', parseDnTemplate, {
      about: 'The group in the virtual directory; `$key$` in a value is a value of the request.',
      required: true,
    }),
    groupNameAttribute: text({ about: "The attribute of the group that holds the group's name.", required: true }),
    removeWorkflow: text({
      about: `The workflow that runs for each member, one after the other, with the group as \`$${removedGroup}$\`.`,
      required: true,
      reference: 'workflow',
    }),
    uidAttributeName,
    requestor,
  },
  prepare: ({ groupToDelete, groupNameAttribute, removeWorkflow, uidAttributeName }) =>
    forEachMember({
      workflow: removeWorkflow,
      uidAttribute: uidAttributeName,
      group: groupToDelete,
      begin: (group, { request }) => {
        const name = group.attributes.first(groupNameAttribute)
        if (name === undefined) {
          throw new GatewayError('WORKFLOW_FAILED', `the group ${group.dn} has no "${groupNameAttribute}"`)
        }
        request.set(removedGroup, name)
        return name
      },
      user: (user) => user,
      end: (request) => request.delete(removedGroup),
    }),
})

/** Sets an attribute of the user to `true` or `false`. */
export const doesGroupExist = defineCustomTask({
  className: 'tasks.DoesGroupExist',
  aliases: [
    'com.tremolosecurity.provisioning.tasks.DoesGroupExist',
    'com.tremolosecurity.provisioning.customTasks.DoesGroupExist',
  ],
  parameters: {
    target: text({ about: 'The target that owns the group.', required: true, reference: 'target' }),
    groupName: nameTemplate({ about: 'The group; `$key$` is a value of the request.', required: true }),
    attributeName: text({ about: 'The attribute of the user that becomes `true` or `false`.', required: true }),
  },
  prepare: ({ target: name, groupName, attributeName }, { pathOf }) => ({
    flow: { ...noFlow, produces: [{ attribute: attributeName, path: pathOf('attributeName') }] },
    create: ({ targets }) =>
      onTarget(name, targets.get(name), async (target, context) => {
        const group = renderGroupName(groupName, context)
        if (!hasGroups(target) && !hasLookups(target)) {
          throw new GatewayError('NOT_SUPPORTED', `target "${name}" has no groups`)
        }
        const found = hasGroups(target) ? await target.findGroup(group) : await target.lookupGroupByName(group)
        context.user.attributes.set(attributeName, [found === undefined ? 'false' : 'true'])
        return next
      }),
  }),
})

type DnTemplate = (context: TaskContext) => Dn

/** The structure of the name is fixed: a value can only be part of one value of it. */
function parseDnTemplate(name: string): DnTemplate {
  const rdns = Dn.parse(name).rdns.map((rdn) =>
    rdn.map(({ type, value }) => ({ type, value: parseTemplate(value, { keys: true, attributes: false }) })),
  )
  const part = (value: Template, context: TaskContext): string => renderGroupName(value, context)
  return (context) => new Dn(rdns.map((rdn) => rdn.map(({ type, value }) => ({ type, value: part(value, context) }))))
}

interface MemberLoop {
  readonly workflow: string
  readonly uidAttribute: string
  readonly group: DnTemplate | undefined
  /** Once, before the first member. Returns a text that is kept until the last one. */
  begin(group: DirectoryEntry, context: TaskContext): string
  user(user: WorkflowUser, kept: string): WorkflowUser
  end?(request: RequestMap): void
}

const maxMembers = 1_000

/** A list of logins in the request, as a key of the engine, which no caller and no other task can set. */
const progressKey = ({ workflow }: MemberLoop, run: RunHead): string => `WORKFLOW.members ${run.workflow} ${workflow}`

/**
 * The members are read once and stored with the run. The called workflow is part of the run, so that each member is
 * handled once, also after a restart, and the next task finds all of them handled.
 */
const forEachMember = (loop: MemberLoop): TaskPlan => ({
  // The writes of the called workflow, once for each member.
  flow: { ...noFlow, opaque: true, writes: true },
  calls: loop.workflow === '' ? [] : [loop.workflow],
  create: ({ directory }) => ({
    run: async (context) => {
      const { request, run, log } = context
      const key = progressKey(loop, run)
      const [kept = '', ...left] = readProgress(request.get(key)) ?? (await begin(loop, directory, context))
      const [login, ...others] = left
      if (login === undefined) {
        request.delete(key)
        loop.end?.(request)
        return next
      }
      request.set(key, [kept, ...others])
      log.info('runs a workflow for a member of a group', { called: loop.workflow, member: login })
      const attributes = Attributes.from({ [loop.uidAttribute]: [login] })
      const user = loop.user({ userID: login, attributes, groups: [], keepGroups: false }, kept)
      return { kind: 'call', workflow: loop.workflow, user, again: true }
    },
  }),
})

const readProgress = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) ? value.map(String) : undefined

/** The kept text, and the logins of the members. A group that does not exist has none. */
async function begin(loop: MemberLoop, directory: MemberDirectory, context: TaskContext): Promise<readonly string[]> {
  const base = loop.group?.(context)
  if (base === undefined) return []
  const filter = { kind: 'present', attribute: 'objectClass' } as const
  const [group] = await directory.search({ base, scope: 'base', filter, limit: 1 })
  if (group === undefined) {
    context.log.info('there is no such group, so it has no members', { group: base.toString() })
    return []
  }
  const members = await directory.members(base, maxMembers + 1)
  if (members.length > maxMembers) {
    throw new GatewayError('WORKFLOW_FAILED', `the group ${base} has more than ${maxMembers} members`)
  }
  const logins = members.flatMap(({ dn, attributes }) => {
    const login = attributes.first(loop.uidAttribute)
    if (login === undefined) context.log.warn('a member of a group has no login', { member: dn.toString() })
    return login ?? []
  })
  return [loop.begin(group, context), ...new Set(logins)]
}
