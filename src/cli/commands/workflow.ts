import type { CommandOutput } from '#cli/command-line/command-line.ts'
import {
  defineCommand,
  fitted,
  listItems,
  maxLimit,
  messageOf,
  operatorName,
  printLines,
  readLimit,
  systemUser,
  type Values,
  WrongUsage,
  wholeNumber,
} from '#cli/command-line/command-line.ts'
import { withDatabase } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { loginIdentity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { Storage } from '#server/composition/stores.ts'
import type { Approval } from '#workflows/record/approval.ts'
import type { Operator } from '#workflows/record/operator.ts'
import {
  type Cancellation,
  isRunState,
  type Run,
  type RunQuery,
  type RunState,
  runStates,
  type StoredRun,
  type StoredStep,
} from '#workflows/record/run.ts'
import { NewerChange } from '#workflows/record/run-requests.ts'
import { wireHead } from '#workflows/record/wire-head.ts'
import { RunInterventions } from '#workflows/runs/interventions.ts'

const options = {
  ...databaseOptions,
  state: { value: 'STATE', multiple: true, about: `list: ${runStates.join(', ')}; can be repeated` },
  name: { value: 'NAME', about: 'list: only runs of this workflow' },
  subject: { value: 'LOGIN', about: 'list: only runs about this user' },
  requestor: { value: 'LOGIN', about: 'list: only runs that this user requested' },
  unfinished: { about: 'list: only changes that failed part way, and are tried again or need an operator' },
  limit: { value: 'N', default: '50', about: 'list: number of runs' },
  reason: { value: 'TEXT', about: 'retry, skip, cancel: reason, for the audit' },
  fence: { value: 'N', about: 'retry, skip, cancel: only if "show" still prints this number' },
  by: { value: 'NAME', about: 'retry, skip, cancel: name of the operator, for the audit (default the system user)' },
  ...outputOption,
} as const
type WorkflowValues = Values<typeof options>

/** For operators; the messages of the store are for the log. */
const hints: Readonly<Record<string, string>> = {
  VERSION_MISMATCH: 'the run has changed; look at it again with "gatehouse workflow show"',
  CONFLICT:
    "the run is not in a state for this: only incidents can be retried or skipped, an approval can't be skipped, and an ended run stays as it is",
}

export const workflowCommand = defineCommand({
  name: 'workflow',
  about: 'List workflow runs, and retry, skip or cancel them. A running gateway continues a run within seconds.',
  options,
  actions: {
    list: { usage: '[options]', about: 'List stored runs, latest first', run: list },
    show: {
      usage: 'ID [options]',
      arguments: ['ID'],
      about: 'Show a run, its timeline and its approvals',
      run: show,
    },
    retry: {
      usage: 'ID [--reason TEXT] [options]',
      arguments: ['ID'],
      about: 'Retry the failed task of an incident',
      run: intervene('retry'),
    },
    skip: {
      usage: 'ID --reason TEXT [options]',
      arguments: ['ID'],
      about: 'Continue after the failed task of an incident, as if it had succeeded',
      run: intervene('skip'),
    },
    cancel: {
      usage: 'ID --reason TEXT [options]',
      arguments: ['ID'],
      about: 'End a run before its next task',
      run: intervene('cancel'),
    },
  },
  examples: [
    'gatehouse workflow list --state incident',
    'gatehouse workflow list --unfinished',
    'gatehouse workflow cancel ID --reason "requested by mistake"',
  ],
  describe: (error) => {
    if (error instanceof NewerChange) return error.publicText
    return (error instanceof GatewayError ? hints[error.code] : undefined) ?? messageOf(error)
  },
})

const maxText = 2_000

async function list(values: WorkflowValues, _: readonly string[], io: CommandOutput): Promise<void> {
  const query = readQuery(values)
  const limit = readLimit(values.limit)
  await withDatabase(values, async ({ runs }) => {
    const read = async (most: number, after: string | undefined) => {
      const page = await runs.list({ ...query, limit: most, ...(after === undefined ? {} : { after }) })
      return { items: page.runs, next: page.next }
    }
    return io.list(listItems(read, limit), {
      lines: (run) => fitted(runLines(run)),
      json: wireRun,
      noun: query.unfinished ? 'unfinished changes' : 'stored runs',
      filters: { ...query, unfinished: undefined },
      hint: query.unfinished ? undefined : 'A run that ended within its SCIM call is only in the audit.',
    })
  })
}

async function show(values: WorkflowValues, [id = '']: readonly string[], io: CommandOutput): Promise<void> {
  await withDatabase(values, async (storage) => {
    const story = await readStory(storage, await findRun(storage, id))
    printLines(storyLines(story), io)
    io.result(wireStory(story))
  })
}

function intervene(action: 'retry' | 'skip' | 'cancel') {
  return async (values: WorkflowValues, [id = '']: readonly string[], io: CommandOutput): Promise<void> => {
    const { fence, ...request } = readIntervention(values, action !== 'retry')
    await withDatabase(values, async (storage) => {
      const run = await findRun(storage, id)
      const interventions = new RunInterventions(storage.runs, storage.audit, systemClock)
      await interventions[action]({ id, fence: fence ?? run.fence, ...request })
      const { state } = await findRun(storage, id)
      io.stdout(`${id} is ${state}${action === 'cancel' && state === 'running' ? ' until its current task ends' : ''}`)
      io.result({ id, state })
    })
  }
}

interface Request {
  readonly by: Operator
  readonly reason?: string
  readonly fence?: number | undefined
}

async function findRun({ runs }: Storage, id: string): Promise<StoredRun> {
  const run = await runs.get(id)
  if (run !== undefined) return run
  throw new Error(`there is no stored run "${id}"; a run that ended within its SCIM call is only in the audit`)
}

async function readStory({ runs, approvals }: Storage, { data: _, ...run }: StoredRun): Promise<RunStory> {
  const steps: StoredStep[] = []
  for (
    let page = await runs.steps(run.head.id);
    page.length > 0;
    page = await runs.steps(run.head.id, steps.at(-1)?.id)
  ) {
    steps.push(...page)
    if (steps.length >= maxLimit) break
  }
  const found: Approval[] = []
  for (const { id } of await approvals.listOfRun(run.head.id)) {
    const approval = await approvals.get(id)
    if (approval !== undefined) found.push(approval)
  }
  return { run, steps, approvals: found }
}

const wireRun = ({ head, ...status }: Run) => ({ ...wireHead(head), ...status })

/** What an approval says of its run. */
function requestOf(head: RunHead) {
  const { id: run, name: workflow, definition: _, requestId: _id, deadline: _deadline, ...about } = wireHead(head)
  return { run, workflow, ...about }
}

/** Without the data and rules that only approvers see. */
const wireStory = ({ run, steps, approvals }: RunStory) => ({
  ...wireRun(run),
  timeline: steps,
  approvals: approvals.map(({ data: _data, rules: _rules, decision, run: about, ...approval }) => ({
    ...requestOf(about),
    ...approval,
    decided: decision?.at,
    decidedBy: decision?.by,
    onBehalfOf: decision?.onBehalfOf,
    comment: decision?.comment,
  })),
})

function readQuery({ state, name, subject, requestor, unfinished }: WorkflowValues): Omit<RunQuery, 'limit'> {
  const wanted = state.map((word) => {
    if (!isRunState(word)) throw new WrongUsage(`--state must be one of ${runStates.join(', ')}`)
    return word
  })
  return {
    ...(wanted.length === 0 ? {} : { states: wanted }),
    name,
    subject,
    requester: requestor,
    unfinished: unfinished || undefined,
  }
}

function readIntervention({ reason, fence, by }: WorkflowValues, needsReason: boolean): Request {
  if (needsReason && (reason ?? '') === '') throw new WrongUsage('--reason is required; the audit records it')
  for (const text of [reason, by]) {
    if (text !== undefined && text.length > maxText)
      throw new WrongUsage(`--reason and --by have at most ${maxText} characters`)
  }
  const login = by ?? systemUser()
  const number = fence === undefined ? undefined : wholeNumber(fence, 0, Number.MAX_SAFE_INTEGER)
  if (fence !== undefined && number === undefined) throw new WrongUsage('--fence must be a whole number')
  return {
    // Only the login is known here, so it is compared with those of the run.
    by: { identity: loginIdentity(login), login: operatorName(by), names: [login] },
    ...(reason === undefined || reason === '' ? {} : { reason }),
    fence: number,
  }
}

/** What administrators see of a run; not its data. */
interface RunStory {
  readonly run: Run
  readonly steps: readonly StoredStep[]
  readonly approvals: readonly Approval[]
}

const stateWidth = 9

/** One line, and one each for an incident and a cancellation, which may be that a later change replaced the run. */
function runLines(run: Run): string[] {
  const { workflow, subject, requester, caller, id } = run.head
  const { created, state, incident, cancel } = run
  const by = caller === undefined ? requester : `${requester} (called by ${caller})`
  const line = `${created.toISOString()} ${state.padEnd(stateWidth)} ${id} ${workflow}, for ${subject}, by ${by}`
  return [
    line,
    ...(incident === undefined ? [] : [`    ${incident.task}: ${incident.code}: ${incident.message}`]),
    ...(cancel === undefined ? [] : [`    ${cancellationText(cancel)}`]),
  ]
}

const cancellationText = ({ by, reason }: Cancellation): string =>
  `${by} requested to cancel it${reason === undefined ? '' : `: ${reason}`}`

function storyLines({ run, steps, approvals }: RunStory): string[] {
  return [
    `run        ${run.head.id}`,
    `workflow   ${run.head.workflow} (definition ${run.head.definition})`,
    `state      ${stateText(run)}`,
    `subject    ${run.head.subject}`,
    `requestor  ${run.head.requester}${run.head.caller === undefined ? '' : ` (called by ${run.head.caller})`}`,
    ...(run.head.reason === undefined ? [] : [`reason     ${run.head.reason}`]),
    ...(run.head.requestId === undefined ? [] : [`request    ${run.head.requestId}`]),
    `created    ${run.created.toISOString()}`,
    ...(run.head.deadline === undefined ? [] : [`deadline   ${run.head.deadline.toISOString()}`]),
    ...(run.ended === undefined ? [] : [`ended      ${run.ended.toISOString()}`]),
    `targets    ${run.touched ? 'changed' : 'not changed'}`,
    `fence      ${run.fence}`,
    ...(run.incident === undefined
      ? []
      : [`problem    ${run.incident.task}: ${run.incident.code}: ${run.incident.message}`]),
    ...(steps.length === 0 ? [] : ['', 'timeline', ...steps.flatMap(stepLines)]),
    ...(approvals.length === 0 ? [] : ['', 'approvals', ...approvals.flatMap(approvalLines)]),
  ]
}

const stateTexts: Partial<Readonly<Record<RunState, (run: Run) => string>>> = {
  ready: ({ due, attempt }) => `ready, due ${due.toISOString()}${attempt === 0 ? '' : `, ${attempt} attempts so far`}`,
  running: ({ worker, leaseUntil }) => `running at ${worker ?? '?'}, lease until ${leaseUntil?.toISOString() ?? '?'}`,
  incident: ({ incident }) => `incident: retry${incident?.maySkip === true ? ', skip' : ''} or cancel it`,
}

function stateText(run: Run): string {
  const text = stateTexts[run.state]?.(run) ?? run.state
  return run.cancel === undefined ? text : `${text}; ${cancellationText(run.cancel)}`
}

function stepLines({ number, attempt, task, taskType, label, started, ended, outcome, error }: StoredStep): string[] {
  const what = label === undefined ? taskType : `${taskType} "${label}"`
  const millis = ended.getTime() - started.getTime()
  const line = `  ${started.toISOString()} ${number}.${attempt} ${task} ${what}: ${outcome} (${millis} ms)`
  return error === undefined ? [line] : [line, `      ${error}`]
}

const shownApprovers = 5

function approvalLines(approval: Approval): string[] {
  const { opened, label, state, id, approvers, decision } = approval
  const more = approvers.length - shownApprovers
  const logins = approvers.slice(0, shownApprovers).map(({ login }) => login)
  const asked = `${logins.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  const lines = [`  ${opened.toISOString()} ${state} "${label}" ${id}, approvers: ${asked}`]
  if (decision !== undefined) {
    const { at, by: decider, onBehalfOf, comment } = decision
    const by = `${decider?.login ?? 'no one in time'}${onBehalfOf === undefined ? '' : ` for ${onBehalfOf}`}`
    lines.push(`      ${at.toISOString()} by ${by}${comment === undefined ? '' : `: ${comment}`}`)
  }
  return lines
}
