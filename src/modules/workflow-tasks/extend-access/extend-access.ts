import type { Grant } from '#domain/grant.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseTemplate } from '#kernel/template.ts'
import { targetUser } from '#modules/shared/tasks/target-user.ts'
import { renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { expiryTime, parseExpiresAfter, parseExpiresAt } from '#sdk/target/expiry.ts'
import { accountExists, accountNamed } from '#sdk/target/new-account.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { defineCustomTask, next, type TaskContext } from '#sdk/workflow/workflow-task.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'

const template = (value: string) => parseTemplate(value, { keys: true, attributes: true })

const parameters = {
  target: text({ about: 'The target in which the user has the access.', required: true, reference: 'target' }),
  group: parsed('template', template, {
    about: 'The group; a template. Absent, it is about the account as a whole.',
  }),
  expiresAfter: parsed('template', template, {
    about: 'How long the access lasts from now on, such as `8h`, `30d` or `P30D`; a template.',
    requirement: 'this or `expiresAt`',
  }),
  expiresAt: parsed('template', template, {
    about: 'When the access ends, as an ISO 8601 time; a template, instead of `expiresAfter`.',
    requirement: 'this or `expiresAfter`',
  }),
}

const templates = ['group', 'expiresAfter', 'expiresAt'] as const

/** Extends the expiry date of access that the user has. It never shortens it, and grants no access. */
export default defineCustomTask({
  className: 'tasks.ExtendAccess',
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if ((given.expiresAfter === undefined) === (given.expiresAt === undefined)) {
      issues.error(params.pathOf('expiresAfter'), 'either "expiresAfter" or "expiresAt" is required')
    }
    return { ...given, path: (name: string) => params.pathOf(name) }
  },
  flow: ({ path, ...given }) => ({
    ...noFlow,
    reads: templates.flatMap((name) => {
      const own = given[name]
      return own === undefined ? [] : templateReads(own, path(name))
    }),
  }),
  create: ({ target, group, expiresAfter, expiresAt }, { grants, clock, targets }) => {
    /** The user's present access, and its new expiry date. Throws CONFLICT and BAD_REQUEST. */
    const read = async (context: TaskContext) => {
      const { userID } = await targetUser(context.user, targets.mapping?.(target))
      const { newAccount } = context.forTarget(target)
      if (newAccount !== undefined && newAccount.own(userID) === undefined) {
        throw accountExists(accountNamed(userID), newAccount.created)
      }
      const name = group === undefined ? userID : renderTask(group, context).trim()
      const kind: Grant['kind'] = group === undefined ? 'user' : 'group'
      const said = renderTask(expiresAfter ?? expiresAt ?? template(''), context)
      const expiry = expiresAfter === undefined ? parseExpiresAt(said) : parseExpiresAfter(said)
      const until = expiry && expiryTime(expiry, clock())
      if (until === undefined) {
        throw new GatewayError('BAD_REQUEST', `ExtendAccess: "${said.slice(0, 100)}" is not a time in the future`, {
          publicText: 'The time at which the access is to end is not one in the next 100 years.',
        })
      }
      const held = (await grants.ofSubject(userID)).find(
        (grant) => grant.target === target && grant.kind === kind && sameLogin(grant.name, name),
      )
      if (held === undefined) throw nothingToExtend(userID, kind, name)
      return { userID, name, kind, until, held }
    }
    return {
      async run(context) {
        const { userID, name, kind, until, held } = await read(context)
        const extended = await grants.extend(held.id, until)
        if (extended === undefined) throw nothingToExtend(userID, kind, name)
        const value = `${name} until ${extended.expires.toISOString()}`
        context
          .forTarget(target)
          .audit({ subject: kind === 'user' ? 'entry' : 'group', action: 'replace', attribute: 'expires', value })
        return next
      },
      async preview(context) {
        const { userID: subject, name, kind, until, held } = await read(context)
        const at = 'at' in until ? until.at : new Date(clock().getTime() + until.inMillis)
        if (at > held.expires) context.effects.grant({ target, subject, kind, name, expires: { at } })
        return next
      },
    }
  },
})

const nothingToExtend = (userID: string, kind: string, name: string): GatewayError =>
  new GatewayError('CONFLICT', `ExtendAccess: "${userID}" has no access to ${kind} "${name}" that ends`, {
    publicText: 'There is no access with an end that could be extended.',
  })
