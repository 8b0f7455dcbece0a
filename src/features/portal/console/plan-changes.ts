import * as z from 'zod'
import { type ConsolePlanDetails, consolePlanDetails } from '#features/portal/contract/console-reconciliations.ts'
import { loginOf, type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import {
  differenceKinds,
  planStates,
  reconciliationActions,
  rowStates,
} from '#features/reconciliation/contract/plan-words.ts'
import type { PlanProgress, ReconciliationPlans } from '#features/reconciliation/service/plans.ts'
import { entryOf } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, badRequest, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody, reasonText } from '#sdk/api/json-body.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { shownPlan, shownRow } from './plan-views.ts'

const maxBodyBytes = 16 * 1024

export const planRequestSchema = z.strictObject({ reason: reasonText.optional() })
export const planChangeSchema = z.strictObject({
  state: z.enum(planStates).describe('The state that the caller saw; a plan in another one is not changed'),
  reason: reasonText,
})

const failures = {
  '403': 'The caller is not an operator',
  '409': 'The plan is not in a state for this',
  '412': 'The plan is not in the state that the caller saw',
}
const changed = { body: 'PlanChange', answer: 'ConsolePlanDetails', failures }

/** Plans, and what operators do with them. */
export const planOperations = {
  getPlan: {
    summary: 'One plan, with how many rows are in each state',
    answer: 'ConsolePlanDetails',
    handle: showPlan,
  },
  listPlanRows: {
    summary: 'The rows of a plan, in its order',
    query: {
      kind: `One of ${differenceKinds.join(', ')}`,
      action: `One of ${reconciliationActions.join(', ')}`,
      state: `One of ${rowStates.join(', ')}`,
      login: 'The login of a person or an account',
      ...listQuery,
    },
    answer: 'PlanRows',
    handle: listRows,
  },
  applyPlan: {
    summary: 'Allows the rows of a plan to be applied',
    ...changed,
    failures: { ...failures, '403': 'The caller is not an operator, or the plan changes their own account' },
    handle: change('approve'),
  },
  pausePlan: { summary: 'Pauses a plan; runs that have started continue', ...changed, handle: change('pause') },
  resumePlan: { summary: 'Continues a plan that is paused', ...changed, handle: change('resume') },
  stopPlan: { summary: 'Ends a plan; runs that have started continue', ...changed, handle: change('stop') },
} satisfies OperationTable<MainParts>

async function findPlan({ host }: MainParts, id: string): Promise<PlanProgress> {
  const found = await host.reconciliations.plans.get(id)
  if (found !== undefined) return found
  throw notFound(`no plan "${id.slice(0, 80)}"`, 'There is no such plan. Plans are deleted some time after their end.')
}

async function showPlan(parts: MainParts, { request, subject }: Exchange, id = ''): Promise<GatewayResponse> {
  readQuery(request.query, [])
  return answer(await details(parts, subject, await findPlan(parts, id)))
}

async function details(parts: MainParts, subject: Subject, found: PlanProgress): Promise<ConsolePlanDetails> {
  const { plan, progress } = found
  return wireForm(consolePlanDetails, {
    ...shownPlan(plan),
    rows: progress,
    own: await parts.host.reconciliations.plans.changesAccountOf(ownNames(parts, subject), plan.id),
    limits: parts.host.reconciliations.configured.get(plan.reconciliation)?.limits,
  })
}

/** The logins and ids that systems may know the caller by. */
export function ownNames(parts: MainParts, subject: Subject): readonly string[] {
  const { uid, identity, link } = subject
  const names = new Set([uid, loginOf(parts, subject), identity, link?.id, entryOf(identity)?.id])
  return [...names].flatMap((name) => (name === undefined || name === '' ? [] : [name]))
}

function change(what: 'approve' | 'pause' | 'resume' | 'stop') {
  return async (parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> => {
    await requireOperator(parts, exchange)
    const { request, subject } = exchange
    const { state, reason } = await readJsonBody(request, planChangeSchema, maxBodyBytes)
    const { plan } = await findPlan(parts, id)
    if (plan.state !== state) {
      throw new GatewayError('VERSION_MISMATCH', `the plan ${plan.id} is ${plan.state}, not ${state}`, {
        publicText: `The plan is ${plan.state} now. Read it again.`,
      })
    }
    const by = { login: subject.uid, identity: subject.identity, names: ownNames(parts, subject) }
    await parts.host.reconciliations.plans[what](plan.id, { by, reason: reason.trim() })
    parts.host.log.info('plan changed by an administrator', { plan: plan.id, change: what, by: subject.uid })
    return answer(await details(parts, subject, await findPlan(parts, plan.id)))
  }
}

type RowQuery = Parameters<ReconciliationPlans['rows']>[1]

async function listRows(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  await findPlan(parts, id)
  return await answerList(exchange, ['kind', 'action', 'state', 'login'], (given) => {
    const filter = {
      kind: readWord('kind', given.kind, differenceKinds),
      action: readWord('action', given.action, reconciliationActions),
      state: readWord('state', given.state, rowStates),
      login: given.login[0] === '' ? undefined : given.login[0],
    } satisfies Partial<RowQuery>
    return {
      name: 'rows',
      file: 'plan',
      read: async ({ after, limit }) => {
        const rows = await parts.host.reconciliations.plans.rows(id, { ...filter, limit, after: readPlace(after) })
        return { rows: rows.map(shownRow), next: rows.length < limit ? undefined : String(rows.at(-1)?.number) }
      },
      columns: {
        row: ({ number }) => number,
        kind: ({ kind }) => kind,
        action: ({ action }) => action,
        state: ({ state }) => state,
        person: ({ source }) => source?.login,
        personId: ({ source }) => source?.id,
        account: ({ target }) => target?.login,
        accountId: ({ target }) => target?.id,
        rule: ({ rule }) => rule,
        reason: ({ reason }) => reason,
        attributes: ({ attributes }) =>
          attributes.map(({ name, from, to }) => `${name}: ${from.join(', ')} → ${to.join(', ')}`).join('; '),
        joins: ({ groups }) => groups.add.join('; '),
        leaves: ({ groups }) => groups.remove.join('; '),
        candidates: ({ candidates = [] }) =>
          candidates.map(({ id, login }) => (id ? `${login} (${id})` : login)).join('; '),
        outcome: ({ outcome }) => outcome,
        run: ({ run }) => run,
      },
    }
  })
}

function readWord<W extends string>(name: string, [given = '']: readonly string[], words: readonly W[]): W | undefined {
  if (given === '') return undefined
  const word = words.find((one) => one === given)
  if (word === undefined) throw badRequest(`${name} must be one of ${words.join(', ')}.`)
  return word
}

function readPlace(after: string | undefined): number | undefined {
  if (after === undefined) return undefined
  const number = /^\d{1,12}$/.test(after) ? Number(after) : undefined
  if (number === undefined) throw badRequest('after must be the next of the page before.')
  return number
}
