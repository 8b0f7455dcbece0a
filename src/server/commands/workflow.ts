import type { Approval } from '#domain/approval.ts'
import {
  isRunState,
  type Run,
  type RunQuery,
  type RunState,
  type RunWithData,
  runStates,
  type StoredStep,
} from '#domain/run.ts'
import { RunInterventions } from '#engine/workflow/interventions.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { CommandIo, RunCommand } from '#server/commands/command-line.ts'
import {
  maxLimit,
  messageOf,
  operatorName,
  readArguments,
  readLimit,
  runAction,
  terminalLine,
  terminalWidth,
  unknownAction,
  WrongUsage,
  wholeNumber,
} from '#server/commands/command-line.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/installation.ts'
import type { Storage } from '#storage/open.ts'

const usage = `List workflow runs, and retry, skip or cancel them. A running gateway continues a run within seconds.

Usage:
  gatehouse workflow list [options]
  gatehouse workflow show ID [options]
  gatehouse workflow retry ID [--reason TEXT] [options]
  gatehouse workflow skip ID --reason TEXT [options]
  gatehouse workflow cancel ID --reason TEXT [options]

Actions:
  list    List stored runs, latest first
  show    Show a run, its timeline and its approvals
  retry   Retry the failed task of an incident
  skip    Continue after the failed task of an incident, as if it had succeeded
  cancel  End a run before its next task

Options:
${databaseUsage}
  --state STATE            list: ready, running, waiting, incident, completed, failed or cancelled; can be repeated
  --name NAME              list: only runs of this workflow
  --subject LOGIN          list: only runs about this user
  --requestor LOGIN        list: only runs that this user requested
  --limit N                list: number of runs (default 50)
  --json                   list, show: print JSON, one object per line
  --reason TEXT            retry, skip, cancel: reason, for the audit
  --fence N                retry, skip, cancel: only if "show" still prints this number
  --by NAME                retry, skip, cancel: name of the operator, for the audit (default the system user)`

const options = {
  ...databaseOptions,
  state: { type: 'string', multiple: true },
  name: { type: 'string' },
  subject: { type: 'string' },
  requestor: { type: 'string' },
  limit: { type: 'string', default: '50' },
  json: { type: 'boolean' },
  reason: { type: 'string' },
  fence: { type: 'string' },
  by: { type: 'string' },
} as const

const pageSize = 500
const maxText = 2_000

const read = (args: string[], io: CommandIo) =>
  readArguments(
    args,
    { command: 'workflow', usage, options, positionals: args[0] === 'list' ? 1 : 2, names: ['ACTION', 'ID'] },
    io,
  )
type Values = Extract<ReturnType<typeof read>, { values: unknown }>['values']
type Action = (storage: Storage, io: CommandIo) => Promise<number>

export const workflowCommand: RunCommand = async (args, io) => {
  const given = read(args, io)
  if ('exit' in given) return given.exit
  const { values, positionals } = given
  const [word = '', id = ''] = positionals
  const run = async (): Promise<number> => {
    const action = actions.get(word)?.(values, id) ?? unknownAction(word, [...actions.keys()])
    return withDatabase(values, (storage) => action(storage, io))
  }
  return runAction('workflow', io, run, describe)
}

/** Each action checks its options before the database is opened. */
const actions: ReadonlyMap<string, (values: Values, id: string) => Action> = new Map([
  ['list', (values: Values) => list(readQuery(values), readLimit(values.limit), values.json === true)],
  ['show', (values: Values, id: string) => show(id, values.json === true)],
  ['retry', (values: Values, id: string) => intervene('retry', id, readIntervention(values, false))],
  ['skip', (values: Values, id: string) => intervene('skip', id, readIntervention(values, true))],
  ['cancel', (values: Values, id: string) => intervene('cancel', id, readIntervention(values, true))],
])

const list =
  (query: Omit<RunQuery, 'limit'>, limit: number, json: boolean): Action =>
  async ({ runs }, io) => {
    const width = terminalWidth()
    let left = limit
    let after: string | undefined
    do {
      const page = await runs.list({
        ...query,
        limit: Math.min(pageSize, left),
        ...(after === undefined ? {} : { after }),
      })
      for (const run of page.runs) {
        for (const line of json ? [JSON.stringify(run)] : runLines(run, width)) io.stdout(line)
      }
      left -= page.runs.length
      after = page.next
    } while (after !== undefined && left > 0)
    return 0
  }

const show =
  (id: string, json: boolean): Action =>
  async (storage, io) => {
    const story = await readStory(storage, await findRun(storage, id))
    for (const line of json ? [storyJson(story)] : storyLines(story, terminalWidth())) io.stdout(line)
    return 0
  }

interface Asked {
  readonly by: string
  readonly reason?: string
  readonly fence?: number
}

const intervene =
  (action: 'retry' | 'skip' | 'cancel', id: string, { fence, ...asked }: Asked): Action =>
  async (storage, io) => {
    const run = await findRun(storage, id)
    const interventions = new RunInterventions(storage.runs, systemClock)
    await interventions[action]({ id, fence: fence ?? run.fence, ...asked })
    const { state } = await findRun(storage, id)
    io.stdout(`${id} is ${state}${action === 'cancel' && state === 'running' ? ' until its current task ends' : ''}`)
    return 0
  }

async function findRun({ runs }: Storage, id: string): Promise<RunWithData> {
  const run = await runs.get(id)
  if (run !== undefined) return run
  throw new Error(`there is no stored run "${id}"; a run that ended within its SCIM call is only in the audit`)
}

async function readStory({ runs, approvals }: Storage, { data: _, ...run }: RunWithData): Promise<RunStory> {
  const steps: StoredStep[] = []
  for (let page = await runs.steps(run.id); page.length > 0; page = await runs.steps(run.id, steps.at(-1)?.id)) {
    steps.push(...page)
    if (steps.length >= maxLimit) break
  }
  const found: Approval[] = []
  for (const { id } of await approvals.listOfRun(run.id)) {
    const approval = await approvals.get(id)
    if (approval !== undefined) found.push(approval)
  }
  return { run, steps, approvals: found }
}

/** Without the data and rules that only approvers see. */
const storyJson = ({ run, steps, approvals }: RunStory): string =>
  JSON.stringify({
    ...run,
    timeline: steps,
    approvals: approvals.map(({ data: _data, rules: _rules, decision, ...approval }) => ({
      ...approval,
      decided: decision?.at,
      decidedBy: decision?.by,
      onBehalfOf: decision?.onBehalfOf,
      comment: decision?.comment,
    })),
  })

function readQuery({ state, name, subject, requestor }: Values): Omit<RunQuery, 'limit'> {
  const wanted = (state ?? []).map((word) => {
    if (!isRunState(word)) throw new WrongUsage(`--state must be one of ${runStates.join(', ')}`)
    return word
  })
  return {
    ...(wanted.length === 0 ? {} : { states: wanted }),
    ...(name === undefined ? {} : { name }),
    ...(subject === undefined ? {} : { subject }),
    ...(requestor === undefined ? {} : { requestor }),
  }
}

function readIntervention({ reason, fence, by }: Values, needsReason: boolean): Asked {
  if (needsReason && (reason ?? '') === '') throw new WrongUsage('--reason is required; the audit records it')
  for (const text of [reason, by]) {
    if (text !== undefined && text.length > maxText)
      throw new WrongUsage(`--reason and --by have at most ${maxText} characters`)
  }
  const number = fence === undefined ? undefined : wholeNumber(fence, 0, Number.MAX_SAFE_INTEGER)
  if (fence !== undefined && number === undefined) throw new WrongUsage('--fence must be a whole number')
  return {
    by: operatorName(by),
    ...(reason === undefined || reason === '' ? {} : { reason }),
    ...(number === undefined ? {} : { fence: number }),
  }
}

/** For operators; the messages of the store are for the log. */
const hints: Readonly<Record<string, string>> = {
  VERSION_MISMATCH: 'the run has changed; look at it again with "gatehouse workflow show"',
  CONFLICT:
    'the run is not in a state for this: only incidents can be retried or skipped, and an ended run stays as it is',
}

const describe = (error: unknown): string =>
  (error instanceof GatewayError ? hints[error.code] : undefined) ?? messageOf(error)

/** What administrators see of a run; not its data. */
interface RunStory {
  readonly run: Run
  readonly steps: readonly StoredStep[]
  readonly approvals: readonly Approval[]
}

const stateWidth = 9

/** One line, and another one for an incident. */
function runLines(run: Run, width: number): string[] {
  const { created, state, name, subject, requestor, caller, id, incident } = run
  const by = caller === undefined ? requestor : `${requestor} (called by ${caller})`
  const lines = [`${created.toISOString()} ${state.padEnd(stateWidth)} ${id} ${name}, for ${subject}, by ${by}`]
  if (incident !== undefined) lines.push(`    ${incident.task}: ${incident.code}: ${incident.message}`)
  return lines.map((line) => terminalLine(line, width))
}

function storyLines({ run, steps, approvals }: RunStory, width: number): string[] {
  const lines = [
    `run        ${run.id}`,
    `workflow   ${run.name} (definition ${run.definition})`,
    `state      ${stateText(run)}`,
    `subject    ${run.subject}`,
    `requestor  ${run.requestor}${run.caller === undefined ? '' : ` (called by ${run.caller})`}`,
    ...(run.reason === undefined ? [] : [`reason     ${run.reason}`]),
    ...(run.requestId === undefined ? [] : [`request    ${run.requestId}`]),
    `created    ${run.created.toISOString()}`,
    ...(run.deadline === undefined ? [] : [`deadline   ${run.deadline.toISOString()}`]),
    ...(run.ended === undefined ? [] : [`ended      ${run.ended.toISOString()}`]),
    `targets    ${run.touched ? 'changed' : 'not changed'}`,
    `fence      ${run.fence}`,
    ...(run.incident === undefined
      ? []
      : [`problem    ${run.incident.task}: ${run.incident.code}: ${run.incident.message}`]),
    ...(steps.length === 0 ? [] : ['', 'timeline', ...steps.flatMap(stepLines)]),
    ...(approvals.length === 0 ? [] : ['', 'approvals', ...approvals.flatMap(approvalLines)]),
  ]
  return lines.map((line) => terminalLine(line, width))
}

const stateTexts: Partial<Readonly<Record<RunState, (run: Run) => string>>> = {
  ready: ({ due, attempt }) => `ready, due ${due.toISOString()}${attempt === 0 ? '' : `, ${attempt} attempts so far`}`,
  running: ({ worker, leaseUntil }) => `running at ${worker ?? '?'}, lease until ${leaseUntil?.toISOString() ?? '?'}`,
  incident: () => 'incident: retry, skip or cancel it',
}

function stateText(run: Run): string {
  const text = stateTexts[run.state]?.(run) ?? run.state
  if (run.cancel === undefined) return text
  const { by, reason } = run.cancel
  return `${text}; ${by} requested to cancel it${reason === undefined ? '' : `: ${reason}`}`
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
