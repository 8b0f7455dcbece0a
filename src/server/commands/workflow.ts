import { userInfo } from 'node:os'
import type { Approval } from '#domain/approval.ts'
import { isRunState, type RunQuery, type RunWithData, runStates, type StoredStep } from '#domain/run.ts'
import { RunInterventions } from '#engine/workflow/interventions.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/open-database.ts'
import { type RunStory, runLines, storyLines } from '#server/commands/run-lines.ts'
import { terminalWidth } from '#server/commands/terminal-line.ts'
import { wholeNumber } from '#server/commands/whole-number.ts'
import type { Storage } from '#storage/open.ts'

const usage = `Usage: gatehouse workflow list [OPTIONS]
       gatehouse workflow show ID [OPTIONS]
       gatehouse workflow retry|skip|cancel ID [--reason TEXT] [OPTIONS]

list    Print stored runs, latest first
show    Print a run with its timeline and its approvals
retry   Try the task of an incident again
skip    Continue after the task of an incident, as if it was done
cancel  End a run before its next task

${databaseUsage}
  --state STATE     list: ready, running, waiting, incident, completed, failed or cancelled; may repeat
  --name NAME       list: only runs of this workflow
  --subject LOGIN   list: only runs about this user
  --requestor LOGIN list: only runs that this user requested
  --limit N         list: at most this many (50)
  --json            one JSON object per line
  --reason TEXT     why; needed to skip and to cancel
  --fence N         only if "show" still prints this number for the run
  --by NAME         who does it, for the audit (the user of this system)

The gateway need not run. If it does, it continues the run within seconds.`

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

const maxLimit = 100_000
const pageSize = 500
const maxText = 2_000

class WrongUsage extends Error {}

const read = (args: string[], io: CommandIo) =>
  readArguments(args, { usage, options, positionals: args[0] === 'list' ? 1 : 2 }, io)
type Values = Extract<ReturnType<typeof read>, { values: unknown }>['values']
type Action = (storage: Storage, io: CommandIo) => Promise<number>

/** `gatehouse workflow list|show|retry|skip|cancel`. */
export const workflowCommand: RunCommand = async (args, io) => {
  const given = read(args, io)
  if ('exit' in given) return given.exit
  const { values, positionals } = given
  const [word = '', id = ''] = positionals
  try {
    const action = actions.get(word)
    if (action === undefined) throw new WrongUsage(`unknown action "${word}"`)
    const run = action(values, id)
    return await withDatabase(values, (storage) => run(storage, io))
  } catch (error) {
    io.stderr(`gatehouse workflow: ${messageOf(error)}`)
    if (!(error instanceof WrongUsage)) return 1
    io.stderr(usage)
    return 2
  }
}

/** Usage is checked before the database is opened. */
const actions: ReadonlyMap<string, (values: Values, id: string) => Action> = new Map([
  ['list', (values: Values) => list(readQuery(values), readLimit(values), values.json === true)],
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
    io.stdout(`${id} is ${state}${action === 'cancel' && state === 'running' ? ', until its present task ends' : ''}`)
    return 0
  }

async function findRun({ runs }: Storage, id: string): Promise<RunWithData> {
  const run = await runs.get(id)
  if (run !== undefined) return run
  throw new Error(
    `there is no stored run "${id}"; one that a SCIM call asked for and that ended within it stands in the audit only`,
  )
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

/** What approvers are shown of the request is not for this list. */
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

function readLimit({ limit }: Values): number {
  const number = wholeNumber(limit, 1, maxLimit)
  if (number === undefined) throw new WrongUsage(`--limit must be a whole number from 1 to ${maxLimit}`)
  return number
}

function readIntervention({ reason, fence, by }: Values, needsReason: boolean): Asked {
  if (needsReason && (reason ?? '') === '') throw new WrongUsage('--reason is needed: it stands in the audit')
  for (const text of [reason, by]) {
    if (text !== undefined && text.length > maxText) throw new WrongUsage(`a text has at most ${maxText} characters`)
  }
  const number = fence === undefined ? undefined : wholeNumber(fence, 0, Number.MAX_SAFE_INTEGER)
  if (fence !== undefined && number === undefined) throw new WrongUsage('--fence must be a whole number')
  return {
    by: by ?? `${userInfo().username} (command line)`,
    ...(reason === undefined || reason === '' ? {} : { reason }),
    ...(number === undefined ? {} : { fence: number }),
  }
}

/** What the store says is for the log; to whoever asked, its public words say more. */
const hints: Readonly<Record<string, string>> = {
  VERSION_MISMATCH: 'something happened to the run since; look at it again',
  CONFLICT: 'the run is not in a state for this; only an incident is retried or skipped, and what has ended stays',
}

function messageOf(error: unknown): string {
  if (error instanceof GatewayError) return hints[error.code] ?? error.message
  return error instanceof Error ? error.message : String(error)
}
