import * as z from 'zod'
import { accountLink, linkedAccount, type UnlinkedAccount } from '#features/portal/contract/console-reconciliations.ts'
import { type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import { connectedNames } from '#features/reconciliation/read/connected-names.ts'
import { idsOfPair } from '#features/reconciliation/read/ids-of-pair.ts'
import { ownAccount } from '#features/reconciliation/service/plans.ts'
import type { Subject } from '#identity/subject.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer } from '#sdk/api/json-answer.ts'
import { readJsonBody, reasonText, storableText } from '#sdk/api/json-body.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { beforeTimeout } from './before-timeout.ts'
import { ownNames } from './plan-changes.ts'
import { shownText } from './plan-views.ts'
import { findReconciliation, noReconciliation } from './reconciliations.ts'

const maxBodyBytes = 16 * 1024
/** Mappings that can't be asked backwards need all people of the source. */
const readMillis = 20_000
/** A page of links doesn't wait longer for their logins. */
const loginsMillis = 5_000
const width = 8
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
      const logins = await loginsOf(parts, reconciliation, found)
      return {
        rows: found.map((one) =>
          wireForm(accountLink, { ...one, ...logins.get(one.source), reason: shownText(one.reason) }),
        ),
        next: found.length < limit ? undefined : found.at(-1)?.source,
        users: found.map(({ decidedBy }) => ({ login: decidedBy })),
      }
    },
    columns: {
      person: ({ source }) => source,
      personLogin: ({ personLogin }) => personLogin,
      account: ({ target }) => target,
      accountLogin: ({ accountLogin }) => accountLogin,
      decided: ({ decided }) => decided,
      decidedBy: ({ decidedBy }) => decidedBy,
      reason: ({ reason }) => reason,
    },
  }))
}

interface Logins {
  readonly personLogin: string | undefined
  readonly accountLogin: string | undefined
}

/** The logins that the systems have for linked ids now, as far as they answer in time. */
async function loginsOf(parts: MainParts, reconciliation: string, links: readonly Pair[]) {
  const logins = new Map<string, Logins>()
  try {
    await beforeTimeout(reconciliation, loginsMillis, async (signal) => {
      const systems = parts.host.reconciliations.systems(reconciliation, signal)
      if (systems === undefined) return
      const { source: people, target: accounts } = systems
      await inParallel(links, width, async ({ source, target }) => {
        signal.throwIfAborted()
        const person = people.hasIds ? await people.find({ id: source, login: source }) : undefined
        const hasId = target !== undefined && !accounts.userIdIsLogin
        const account = hasId ? await accounts.lookupUserById(target) : undefined
        logins.set(source, { personLogin: person?.userID, accountLogin: account?.userID })
      })
    })
  } catch (err) {
    if (!(err instanceof GatewayError)) throw err
    parts.host.log.warn('the logins of links could not be read', { reconciliation, err })
  }
  return logins
}

async function link(parts: MainParts, exchange: Exchange, reconciliation = ''): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { request, subject } = exchange
  findReconciliation(parts, reconciliation)
  const { source, target, reason } = await readJsonBody(request, linkSchema, maxBodyBytes)
  const { plans } = parts.host.reconciliations
  const known = await plans.storedNames({ reconciliation, source, target })
  const { by, now } = await requireOthers(parts, subject, reconciliation, [{ source, target }, known])
  const stored = {
    source: now.source ?? known.source,
    target: now.target ?? known.target,
    unknown: known.unknown.filter((name) => (name === source ? now.source : now.target) === undefined),
  }
  const linked = await plans.link({ reconciliation, source, target, stored, by, reason: reason.trim() })
  return answer(wireForm(linkedAccount, linked))
}

async function unlink(parts: MainParts, exchange: Exchange, reconciliation = ''): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { request, subject } = exchange
  findReconciliation(parts, reconciliation)
  const { source, reason } = await readJsonBody(request, unlinkSchema, maxBodyBytes)
  const { by } = await requireOthers(parts, subject, reconciliation, [{ source }])
  const removed = await parts.host.reconciliations.plans.unlink(reconciliation, source, { by, reason: reason.trim() })
  return answer({ removed } satisfies UnlinkedAccount)
}

type Pair = Parameters<typeof idsOfPair>[1]

/**
 * Who decides, and the ids of the first pair. Throws ACCESS_DENIED if the decision is about an account that is, or would be,
 * the caller's own in the systems now, and the error of a system that can't be read.
 */
async function requireOthers(
  parts: MainParts,
  subject: Subject,
  reconciliation: string,
  pairs: readonly [Pair, ...Pair[]],
) {
  const { uid: login, identity } = subject
  const names = ownNames(parts, subject)
  const own = new Set(names.map((name) => name.toLowerCase()))
  const { now, concerned } = await beforeTimeout(reconciliation, readMillis, async (signal) => {
    const systems = parts.host.reconciliations.systems(reconciliation, signal)
    if (systems === undefined) throw noReconciliation(reconciliation)
    const people = pairs.map(({ source }) => source)
    const accounts = pairs.flatMap(({ target }) => target ?? [])
    const concerned = await connectedNames(systems, { people, accounts })
    return { concerned, now: await idsOfPair(systems, pairs[0]) }
  }).catch((thrown: unknown) => {
    const error = asGatewayError(thrown)
    const publicText = `Whether this is about your own account could not be checked. ${error.publicText}`
    throw new GatewayError(error.code, error.message, { cause: thrown, publicText })
  })
  if (concerned.some((name) => own.has(name.toLowerCase()))) throw ownAccount(login)
  return { by: { login, identity, names }, now }
}
