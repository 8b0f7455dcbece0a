import type { ReconciliationConfig } from '#config/configuration/configuration.ts'
import {
  type ConsoleReconciliation,
  type ConsoleReconciliationDetails,
  consoleReconciliation,
  consoleReconciliationDetails,
  type RequestedPlan,
} from '#features/portal/contract/console-reconciliations.ts'
import { type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import { ruleName } from '#features/reconciliation/read/systems.ts'
import type { Drift } from '#features/reconciliation/store/plan-record.ts'
import type { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody } from '#sdk/api/json-body.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { pageByName } from './named-page.ts'
import { planRequestSchema } from './plan-changes.ts'
import { shownPlan, shownReport } from './plan-views.ts'

const maxBodyBytes = 16 * 1024
/** Reports of a trend, of one reconciliation and of each of a list. */
const trendReports = { one: 60, each: 14 } as const
/** Plans that are read at a time. */
const width = 8

export const reconciliationOperations = {
  listReconciliations: {
    summary: 'The reconciliations, each with what its last comparison found',
    query: { q: 'A part of the name or of a system', ...listQuery },
    answer: 'ConsoleReconciliations',
    handle: listReconciliations,
  },
  getReconciliation: {
    summary: 'One reconciliation, with its rules, limits and latest comparisons',
    answer: 'ConsoleReconciliationDetails',
    handle: showReconciliation,
  },
  listPlans: {
    summary: 'The plans of a reconciliation, latest first',
    query: listQuery,
    answer: 'ConsolePlans',
    handle: listPlans,
  },
  requestPlan: {
    summary: 'Requests a plan: a gateway compares the systems, and changes nothing',
    body: 'PlanRequest',
    answers: { '202': { description: 'The plan, or the one that is under way', schema: 'RequestedPlan' } },
    handle: requestPlan,
  },
} satisfies OperationTable<MainParts>

/** Throws NOT_FOUND for one that is not configured, or is set aside. */
export function findReconciliation({ host }: MainParts, name: string): ReconciliationConfig {
  const found = host.reconciliations.configured.get(name)
  if (found !== undefined) return found
  throw noReconciliation(name)
}

export const noReconciliation = (name: string): GatewayError =>
  notFound(`no reconciliation "${name.slice(0, 80)}"`, 'No reconciliation with this name is configured.')

const sourceName = ({ source }: ReconciliationConfig): string =>
  source.kind === 'target' ? source.name : source.base.toString()

async function listReconciliations(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const { plans, configured } = parts.host.reconciliations
  return await answerList(exchange, ['q'], ({ q: [q = ''] }) => ({
    name: 'reconciliations',
    read: async (page) => {
      const word = q.trim().toLowerCase()
      const found = [...configured]
        .map(([name, config]) => ({ name, config }))
        .filter(({ name, config }) => `${name}\n${sourceName(config)}\n${config.target}`.toLowerCase().includes(word))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
      const { rows, next } = pageByName(found, page)
      const drift = await plans.drift()
      const shown = await inParallel(rows, width, ({ name, config }) => overview(parts, name, config, 'each', drift))
      return { rows: shown, next }
    },
    columns: {
      name: ({ name }) => name,
      source: ({ source }) => source,
      target: ({ target }) => target,
      compared: ({ drift }) => drift?.at,
      agree: ({ drift }) => drift?.agree,
      missing: ({ drift }) => drift?.missing,
      different: ({ drift }) => drift?.different,
      extra: ({ drift }) => drift?.extra,
      ambiguous: ({ drift }) => drift?.ambiguous,
      unknown: ({ drift }) => drift?.unknown,
      differsSince: ({ differsSince }) => differsSince,
      plan: ({ plan }) => plan?.id,
      planState: ({ plan }) => plan?.state,
    },
  }))
}

async function overview(
  { host }: MainParts,
  name: string,
  config: ReconciliationConfig,
  reports: keyof typeof trendReports,
  all: ReadonlyMap<string, Drift>,
): Promise<ConsoleReconciliation> {
  const { plans } = host.reconciliations
  const drift = all.get(name)
  const [plan] = await plans.list({ reconciliation: name, limit: 1 })
  const trend = await plans.trend(name, trendReports[reports])
  return wireForm(consoleReconciliation, {
    ...config,
    name,
    source: sourceName(config),
    drift: drift && shownReport(drift.report),
    differsSince: drift?.differsSince,
    plan: plan && shownPlan(plan),
    trend: trend.map(shownReport).reverse(),
  })
}

async function showReconciliation(parts: MainParts, { request }: Exchange, name = ''): Promise<GatewayResponse> {
  readQuery(request.query, [])
  const config = findReconciliation(parts, name)
  const shown: ConsoleReconciliationDetails = wireForm(consoleReconciliationDetails, {
    ...config,
    ...(await overview(parts, name, config, 'one', await parts.host.reconciliations.plans.drift())),
    rules: config.correlation.map(ruleName),
  })
  return answer(shown)
}

async function listPlans(parts: MainParts, exchange: Exchange, name = ''): Promise<GatewayResponse> {
  findReconciliation(parts, name)
  return await answerList(exchange, [], () => ({
    name: 'plans',
    names: parts.names,
    read: async ({ after, limit }) => {
      const found = await parts.host.reconciliations.plans.list({ reconciliation: name, before: after, limit })
      const people = found.flatMap(({ requestedBy, approval }) => [requestedBy, approval?.by ?? ''])
      return {
        rows: found.map(shownPlan),
        next: found.length < limit ? undefined : found.at(-1)?.id,
        users: people.map((login) => ({ login })),
      }
    },
    columns: {
      id: ({ id }) => id,
      state: ({ state }) => state,
      created: ({ created }) => created,
      compared: ({ compared }) => compared,
      ended: ({ ended }) => ended,
      requestedBy: ({ requestedBy }) => requestedBy,
      reason: ({ reason }) => reason,
      approvedBy: ({ approval }) => approval?.by,
      approvalReason: ({ approval }) => approval?.reason,
      agree: ({ counts }) => counts.agree,
      missing: ({ counts }) => counts.differences.missing,
      different: ({ counts }) => counts.differences.different,
      extra: ({ counts }) => counts.differences.extra,
      ambiguous: ({ counts }) => counts.differences.ambiguous,
      unknown: ({ counts }) => counts.differences.unknown,
      problem: ({ problem }) => problem,
    },
  }))
}

async function requestPlan(parts: MainParts, exchange: Exchange, name = ''): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { request, subject } = exchange
  findReconciliation(parts, name)
  const { reason } = await readJsonBody(request, planRequestSchema, maxBodyBytes)
  const by = { login: subject.uid, identity: subject.identity }
  const { plan, isNew } = await parts.host.reconciliations.plans.request(name, { by, reason: reason?.trim() })
  return answer({ plan: shownPlan(plan), isNew } satisfies RequestedPlan, 202)
}
