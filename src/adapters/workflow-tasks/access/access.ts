import { auditedCall } from '#adapters/workflow-tasks/shared/audited-call.ts'
import { checkVersion, targetUser } from '#adapters/workflow-tasks/shared/target-user.ts'
import { defineTask, template } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderTask, templateReads } from '#adapters/workflow-tasks/shared/task-template.ts'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { noFlow, writingFlow } from '#sdk/flow/flow.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { expiryTime, parseExpiresAfter, parseExpiresAt } from '#sdk/target/expiry.ts'
import { accountExists, accountNamed } from '#sdk/target/new-account.ts'
import type { Target, TargetRequest } from '#sdk/target/target.ts'
import { type Grant, lastsLonger } from '#sdk/workflow/grant.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { anyVersion } from '#sdk/workflow/workflow.ts'
import { defineCustomTask, next, type TaskContext, type TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import { sameLogin, takeVersion } from '#sdk/workflow/workflow-user.ts'

/** Tasks that end or extend a user's access at a target. */

export const deleteUser = defineTask({
  taskType: 'delete',
  fields: {
    target: text({ about: 'The target that the user is deleted from.', required: true, reference: 'target' }),
  },
  prepare: ({ target: name }) => ({
    flow: writingFlow,
    create: ({ targets }) => {
      const mapping = targets.mapping?.(name)
      return onTarget(name, targets.get(name), async (target, { user, forTarget }) => {
        const request = forTarget(name)
        const { userID, attributes, groups } = await targetUser(user, mapping)
        const found = await target.findUser(userID, [], request)
        if (found === undefined) return next
        const expectedVersion = takeVersion(user, name, [userID])?.version
        checkVersion(found, expectedVersion)
        const isBound = expectedVersion !== undefined && expectedVersion !== anyVersion
        const options = isBound ? { expectedVersion } : {}
        await deleteAudited(target, { userID, attributes, groups }, request, options)
        return next
      })
    },
  }),
})

function deleteAudited(
  target: Target,
  user: User,
  request: TargetRequest,
  options: { readonly expectedVersion?: string } = {},
): Promise<void> {
  return auditedCall(
    request,
    () => [{ subject: 'entry', action: 'delete', attribute: 'userID', value: user.userID }],
    (audited) => target.deleteUser(user, audited, options),
  )
}

/** Extends the expiry date of access that the user has. It refuses an earlier one, and grants no access. */
export const extendAccess = defineCustomTask({
  className: 'tasks.ExtendAccess',
  parameters: {
    target: text({ about: 'The target in which the user has the access.', required: true, reference: 'target' }),
    group: template({ about: 'The group; a template. Absent, it is about the account as a whole.' }),
    expiresAfter: template({
      about: 'How long the access lasts from now on, such as `8h`, `30d` or `P30D`; a template.',
      requirement: 'this or `expiresAt`',
    }),
    expiresAt: template({
      about: 'When the access ends, as an ISO 8601 time; a template, instead of `expiresAfter`.',
      requirement: 'this or `expiresAfter`',
    }),
  },
  prepare: ({ target, ...templates }, { issues, pathOf }) => {
    const { group, expiresAfter, expiresAt } = templates
    if ((expiresAfter.text === '') === (expiresAt.text === '')) {
      issues.error(pathOf('expiresAfter'), 'either "expiresAfter" or "expiresAt" is required')
    }
    const kind: Grant['kind'] = group.text === '' ? 'user' : 'group'
    const reads = Object.entries(templates).flatMap(([name, one]) => templateReads(one, pathOf(name)))
    return {
      flow: { ...noFlow, reads, writes: true },
      create: ({ grants, clock, targets }) => {
        /** The user's present access, and its new expiry date. Throws CONFLICT and BAD_REQUEST. */
        const read = async (context: TaskContext) => {
          const { userID } = await targetUser(context.user, targets.mapping?.(target))
          const { newAccount } = context.forTarget(target)
          if (newAccount !== undefined && newAccount.own(userID) === undefined) {
            throw accountExists(accountNamed(userID), newAccount.created)
          }
          const name = kind === 'user' ? userID : renderTask(group, context).trim()
          const after = renderTask(expiresAfter, context)
          const at = renderTask(expiresAt, context)
          const expiry = expiresAfter.text === '' ? parseExpiresAt(at) : parseExpiresAfter(after)
          const until = expiry && expiryTime(expiry, clock())
          if (until === undefined) {
            const given = `${after}${at}`.slice(0, 100)
            throw new GatewayError('BAD_REQUEST', `ExtendAccess: "${given}" is not a time in the future`, {
              publicText: 'The time at which the access is to end is not one in the next 100 years.',
            })
          }
          const present = (await grants.ofSubject(userID)).find(
            (grant) => grant.target === target && grant.kind === kind && sameLogin(grant.name, name),
          )
          if (present === undefined) throw nothingToExtend(userID, kind, name)
          const ends = 'at' in until ? until.at : new Date(clock().getTime() + until.inMillis)
          if (ends < present.expires) throw lastsLonger(present, ends)
          return { userID, name, until, ends, present }
        }
        return {
          async run(context) {
            const { userID, name, until, present } = await read(context)
            const extended = await grants.extend(present.id, until, context.run.id)
            if (extended === undefined) throw nothingToExtend(userID, kind, name)
            const value = `${name} until ${extended.expires.toISOString()}`
            const subject = kind === 'user' ? 'entry' : 'group'
            context.forTarget(target).audit({ subject, action: 'replace', attribute: 'expires', value })
            return next
          },
          async preview(context) {
            const { userID: subject, name, ends: at, present } = await read(context)
            if (at > present.expires) context.effects.grant({ target, subject, kind, name, expires: { at } })
            return next
          },
        }
      },
    }
  },
})

const nothingToExtend = (userID: string, kind: string, name: string): GatewayError =>
  new GatewayError('CONFLICT', `ExtendAccess: "${userID}" has no access to ${kind} "${name}" that ends`, {
    publicText: 'There is no access with an end that could be extended.',
  })

/** Works on the target's own data, by the login there: no mapping is applied, and no user is created. */
export const revokeAccess = defineCustomTask({
  className: 'tasks.RevokeAccess',
  parameters: {
    target: template({ about: 'The target in which access is revoked; a template.', required: true }),
    kind: template({
      about: '`group` removes the user from a group, `user` deletes the user; a template.',
      required: true,
    }),
    name: template({
      about: 'The group; for a user the login, which must be that of the run. A template.',
      required: true,
    }),
  },
  prepare: (templates, { pathOf }) => {
    const revoke = async (targetOf: (name: string) => Target, context: TaskContext): Promise<TaskOutcome> => {
      const render = (field: keyof typeof templates): string => {
        const value = renderTask(templates[field], context).trim()
        if (value === '') throw new GatewayError('WORKFLOW_FAILED', `RevokeAccess: "${field}" is empty`)
        return value
      }
      const [targetName, kind, name] = [render('target'), render('kind'), render('name')]
      const { userID } = context.user
      const target = targetOf(targetName)
      const request = context.forTarget(targetName)
      if (kind === 'group') await leaveGroup(target, userID, name, request)
      else if (kind === 'user' && sameLogin(name, userID)) {
        const found = await target.findUser(userID, [], request)
        if (found !== undefined) await deleteAudited(target, found, request)
      } else throw new GatewayError('WORKFLOW_FAILED', `RevokeAccess: "${kind}" of "${name}" cannot be taken back`)
      return next
    }
    return {
      flow: {
        ...noFlow,
        writes: true,
        reads: Object.entries(templates).flatMap(([name, one]) => templateReads(one, pathOf(name))),
      },
      create: ({ targets }) => ({
        run: (context) => revoke((name) => targets.get(name), context),
        preview: (context) => revoke((name) => context.target(name), context),
      }),
    }
  },
})

/** How often the target is read again because another writer changed the user meanwhile. */
const maxAttempts = 3

async function leaveGroup(target: Target, userID: string, group: string, request: TargetRequest): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const found = await target.findUser(userID, [], request)
    const membership = found?.groups.find((name) => name.toLowerCase() === group.toLowerCase())
    if (found === undefined || membership === undefined) return
    try {
      await withoutGroup(target, found, membership, request)
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
