import * as z from 'zod'
import { accountLink, linkedAccount, type UnlinkedAccount } from '#features/portal/contract/console-reconciliations.ts'
import { type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer } from '#sdk/api/json-answer.ts'
import { readJsonBody, reasonText, storableText } from '#sdk/api/json-body.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { ownLogins } from './plan-changes.ts'
import { shownText } from './plan-views.ts'
import { findReconciliation } from './reconciliations.ts'

const maxBodyBytes = 16 * 1024
const name = storableText(500).min(1)

export const linkSchema = z.strictObject({
  source: name.describe('The login of the person, or the id at the source'),
  target: name.describe('The login or the id of the account. Absent: the person has no account').optional(),
  reason: reasonText,
})
export const unlinkSchema = z.strictObject({ source: name.describe('As the list has it'), reason: reasonText })

const failures = { '403': 'The caller is not an operator, or would decide about their own account' }

/** Decisions which account a person has. */
export const linkOperations = {
  listAccountLinks: {
    summary: 'The decisions which account a person has, in the order of the names',
    query: listQuery,
    answer: 'AccountLinks',
    handle: listLinks,
  },
  linkAccount: {
    summary: 'Decides which account a person has, or that the person has none; later plans use it',
    body: 'AccountDecision',
    answer: 'LinkedAccount',
    failures: { ...failures, '409': 'Another person has the account' },
    handle: link,
  },
  unlinkAccount: {
    summary: 'Forgets the decision about a person',
    body: 'AccountDecisionRemoval',
    answer: 'UnlinkedAccount',
    failures,
    handle: unlink,
  },
} satisfies OperationTable<MainParts>

async function listLinks(parts: MainParts, exchange: Exchange, reconciliation = ''): Promise<GatewayResponse> {
  findReconciliation(parts, reconciliation)
  return await answerList(exchange, [], () => ({
    name: 'links',
    names: parts.names,
    read: async ({ after, limit }) => {
      const found = await parts.host.reconciliations.plans.links(reconciliation, limit, after)
      return {
        rows: found.map((one) => wireForm(accountLink, { ...one, reason: shownText(one.reason) })),
        next: found.length < limit ? undefined : found.at(-1)?.source,
        users: found.map(({ decidedBy }) => ({ login: decidedBy })),
      }
    },
    columns: {
      person: ({ source }) => source,
      account: ({ target }) => target,
      decided: ({ decided }) => decided,
      decidedBy: ({ decidedBy }) => decidedBy,
      reason: ({ reason }) => reason,
    },
  }))
}

async function link(parts: MainParts, exchange: Exchange, reconciliation = ''): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { request, subject } = exchange
  findReconciliation(parts, reconciliation)
  const { source, target, reason } = await readJsonBody(request, linkSchema, maxBodyBytes)
  await requireOthers(parts, subject, reconciliation, target === undefined ? [source] : [source, target])
  const by = { login: subject.uid, identity: subject.identity }
  const { plans } = parts.host.reconciliations
  const linked = await plans.link({ reconciliation, source, target, by, reason: reason.trim() })
  return answer(wireForm(linkedAccount, linked))
}

async function unlink(parts: MainParts, exchange: Exchange, reconciliation = ''): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { request, subject } = exchange
  findReconciliation(parts, reconciliation)
  const { source, reason } = await readJsonBody(request, unlinkSchema, maxBodyBytes)
  await requireOthers(parts, subject, reconciliation, [source])
  const by = { login: subject.uid, identity: subject.identity }
  const removed = await parts.host.reconciliations.plans.unlink(reconciliation, source, { by, reason: reason.trim() })
  return answer({ removed } satisfies UnlinkedAccount)
}

const ownRows = 20

/** Throws ACCESS_DENIED if one of the names is a login of the caller, or an id that the last plan has for it. */
async function requireOthers(
  parts: MainParts,
  subject: Subject,
  reconciliation: string,
  names: readonly string[],
): Promise<void> {
  const { plans } = parts.host.reconciliations
  const logins = ownLogins(parts, subject).map((login) => login.toLowerCase())
  const last = (await plans.drift()).get(reconciliation)?.report.plan
  const rows = await Promise.all(
    logins.map((login) => (last === undefined ? [] : plans.rows(last, { login, limit: ownRows }))),
  )
  const own = rows
    .flat()
    .flatMap(({ difference: { source, target, candidates = [] } }) => [source, target, ...candidates])
    .flatMap((one) => (one?.id !== undefined && logins.includes(one.login.toLowerCase()) ? [one.id] : []))
  if (!names.some((one) => logins.includes(one.toLowerCase()) || own.includes(one))) return
  throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" would decide about their own account`, {
    publicText: 'You cannot decide about your own account. Ask another operator.',
  })
}
