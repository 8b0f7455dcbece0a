import * as z from 'zod'
import type { AdminRun, AdminRunDetails, AdminStep } from '#features/portal/contract/main-admin.ts'
import { adminRun, adminStep } from '#features/portal/contract/main-admin.ts'
import type { DecisionView, RequestApproval } from '#features/portal/contract/main-requests.ts'
import type { Subject } from '#identity/subject.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, badRequest, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody, reasonText, storableText } from '#sdk/api/json-body.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { Operation, OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import { isInvolvedIn } from '#workflows/approvals/decision-influence.ts'
import type { Approval, ApprovalDecision } from '#workflows/record/approval.ts'
import { operatorOf } from '#workflows/record/operator.ts'
import {
  isRunState,
  type Run,
  type RunQuery,
  type RunState,
  runStates,
  type StoredStep,
} from '#workflows/record/run.ts'
import type { PinnedRun } from '#workflows/record/run-requests.ts'
import { wireHead } from '#workflows/record/wire-head.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import { answerList, type List, listQuery, readTime } from './list-answer.ts'
import { approversOf, type LookUpNames, usersOfRun } from './person-names.ts'

const maxBodyBytes = 16 * 1024
const runId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const fence = z.int().min(0)

/** Skipping a task, cancelling a run and choosing an approver need a reason. */
export const interventions = {
  retry: z.strictObject({
    fence,
    reason: storableText(2_000).optional(),
    approver: storableText(500).min(1).describe('The login of the approver of a run that has none.').optional(),
  }),
  skip: z.strictObject({ fence, reason: reasonText }),
  cancel: z.strictObject({ fence, reason: reasonText }),
}
type Action = keyof typeof interventions

interface RunParts {
  readonly host: Pick<FilterHost, 'log' | 'clock'> & { readonly runs: RunService; readonly approvals: ApprovalDesk }
  /** Without it, answers have logins only. */
  readonly names?: LookUpNames
}

const runFilter = {
  name: 'The workflow',
  subject: 'A login',
  requestor: 'A login',
  target: 'Only incidents at this target',
  unfinished:
    '"true": only changes that failed part way, and are tried again or are incidents; "false": only all others',
  from: 'Created since then: ISO 8601, or such as 7d',
  until: 'Created before then',
  ...listQuery,
}

/**
 * The runs of this installation. The caller has checked that the user may see them; `requireOperator` throws unless the
 * user may also retry, skip and cancel.
 */
export const runOperations = <P extends RunParts>(
  requireOperator: (parts: P, exchange: Exchange) => Promise<void> | void,
) => {
  const change =
    (action: Action): Operation<P>['handle'] =>
    async (parts, exchange, id = '') => {
      await requireOperator(parts, exchange)
      return await intervene(parts, exchange, action, id)
    }
  return {
    listIncidents: {
      summary: 'Runs that an administrator has to look at',
      query: runFilter,
      answer: 'AdminRuns',
      handle: listIncidents,
    },
    listRuns: {
      summary: 'Stored runs',
      query: { state: 'Only of this state; may repeat', ...runFilter },
      answer: 'AdminRuns',
      handle: listRuns,
    },
    getRun: {
      summary: 'One run',
      query: { after: 'The id of a step: only the steps after it' },
      answer: 'AdminRunDetails',
      handle: showRun,
    },
    retryRun: {
      summary: 'Tries the step again',
      body: 'RetryRun',
      answer: 'AdminRun',
      handle: change('retry'),
    },
    skipRun: {
      summary: 'Continues with the next step',
      body: 'SkipRun',
      answer: 'AdminRun',
      handle: change('skip'),
    },
    cancelRun: {
      summary: 'Ends the run',
      body: 'CancelRun',
      answer: 'AdminRun',
      handle: change('cancel'),
    },
  } satisfies OperationTable<P>
}

async function listIncidents(parts: RunParts, exchange: Exchange): Promise<GatewayResponse> {
  return await answerList(exchange, runFilters, (given) =>
    runList(parts, exchange, { ...readRunFilter(given, parts.host.clock()), states: ['incident'] }),
  )
}

async function listRuns(parts: RunParts, exchange: Exchange): Promise<GatewayResponse> {
  const many = ['state'] as const
  return await answerList(
    exchange,
    [...runFilters, ...many],
    ({ state, ...given }) => {
      const states = readStates(state)
      const filter = readRunFilter(given, parts.host.clock())
      return runList(parts, exchange, { ...filter, ...(states.length === 0 ? {} : { states }) })
    },
    many,
  )
}

/** The filters of lists of runs, besides the state. */
const runFilters = ['name', 'subject', 'requestor', 'target', 'unfinished', 'from', 'until'] as const
type RunFilter = Omit<RunQuery, 'after' | 'limit'>

/** The runs that match the filter. */
export const runList = (
  { host: { runs }, names }: Pick<RunParts, 'host' | 'names'>,
  { subject }: Pick<Exchange, 'subject'>,
  filter: RunFilter,
): List<AdminRun> => ({
  name: 'runs',
  names,
  read: async (page) => {
    const { runs: found, next } = await runs.list({ ...filter, ...page })
    return { rows: found.map((run) => runDocument(run, subject)), next, users: found.flatMap(usersOfRun) }
  },
  columns: {
    id: ({ id }) => id,
    workflow: ({ name }) => name,
    state: ({ state }) => state,
    subject: ({ subject }) => subject,
    requester: ({ requestor }) => requestor,
    submittedBy: ({ caller }) => caller,
    reason: ({ reason }) => reason,
    created: ({ created }) => created,
    updated: ({ updated }) => updated,
    ended: ({ ended }) => ended,
    task: ({ incident }) => incident?.task,
    error: ({ incident }) => incident?.message,
  },
  nameColumns: {
    subjectName: ({ subject }) => [subject],
    requesterName: ({ requestor }) => [requestor],
    submittedByName: ({ caller }) => [caller],
  },
})

function readRunFilter(given: Readonly<Record<(typeof runFilters)[number], readonly string[]>>, now: Date): RunFilter {
  const [unfinished] = given.unfinished
  if (unfinished !== undefined && unfinished !== 'true' && unfinished !== 'false') {
    throw badRequest('unfinished must be true or false.')
  }
  return {
    name: given.name[0],
    subject: given.subject[0],
    requester: given.requestor[0],
    target: given.target[0],
    unfinished: unfinished === undefined ? undefined : unfinished === 'true',
    from: readTime('from', given.from, now),
    until: readTime('until', given.until, now),
  }
}

const readStates = (words: readonly string[]): readonly RunState[] =>
  [...new Set(words)].map((word) => {
    if (isRunState(word)) return word
    throw badRequest(`state must be one of ${runStates.join(', ')}.`)
  })

async function showRun({ host, names }: RunParts, { request, subject }: Exchange, id = ''): Promise<GatewayResponse> {
  const after = readStep(readQuery(request.query, ['after']).after)
  const run = await requireRun(host, id)
  const [timeline, approvals] = await Promise.all([host.runs.steps(id, after), host.approvals.ofRun(id)])
  return answer({
    ...runDocument(run, subject),
    definitions: run.definitions,
    timeline: timeline.map(stepDocument),
    approvals: approvals.map((approval) => ({
      ...approvalDocument(approval),
      version: approval.version,
      step: approval.step,
    })),
    ...(names === undefined ? {} : { names: await names([...usersOfRun(run), ...approvals.flatMap(approversOf)]) }),
  } satisfies AdminRunDetails)
}

/** The step after which a timeline continues. */
function readStep([text]: readonly string[]): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw badRequest('after must be the id of a step.')
}

interface AskedIntervention {
  readonly fence: number
  readonly reason?: string | undefined
  readonly approver?: string | undefined
}

/** Answers with the changed run. */
async function intervene(
  { host }: RunParts,
  { request, subject }: Exchange,
  action: Action,
  id: string,
): Promise<GatewayResponse> {
  const run = await requireRun(host, id)
  const {
    reason = '',
    approver,
    ...asked
  } = await readJsonBody<AskedIntervention>(request, interventions[action], maxBodyBytes)
  const by = operatorOf(subject)
  const said = reason.trim() === '' ? {} : { reason: reason.trim() }
  if (approver !== undefined && reason.trim() === '') throw badRequest('Give a reason for the choice of the approver.')
  const appointed = approver === undefined ? {} : { appointed: await host.approvals.appoint(run, approver, by) }
  await host.runs[action]({ id, fence: asked.fence, by, ...said, ...appointed })
  host.log.info('workflow run changed by an administrator', { workflowId: id, action, by: subject.uid })
  return answer(runDocument(await requireRun(host, id), subject))
}

async function requireRun({ runs }: RunParts['host'], id: string): Promise<PinnedRun> {
  const run = runId.test(id) ? await runs.get(id) : undefined
  if (run !== undefined) return run
  throw notFound(`no run "${id.slice(0, 80)}"`, 'There is no such run.')
}

const runDocument = (run: Run, subject: Subject): AdminRun =>
  wireForm(adminRun, { ...run, ...wireHead(run.head), involvesCaller: isInvolvedIn(run.head, operatorOf(subject)) })

const stepDocument = (step: StoredStep): AdminStep => wireForm(adminStep, step)

export const approvalDocument = ({ id, label, state, opened, escalation, ...rest }: Approval): RequestApproval => ({
  id,
  label,
  status: state,
  opened: opened.toISOString(),
  escalation,
  approvers: rest.approvers.map(({ login }) => login),
  ...(rest.decision === undefined ? {} : { decision: decisionView(rest.decision) }),
})

export const decisionView = ({ at, by, onBehalfOf, comment }: ApprovalDecision): DecisionView => ({
  at: at.toISOString(),
  ...(by === undefined ? {} : { by: by.login }),
  ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
  ...(comment === undefined ? {} : { comment }),
})
