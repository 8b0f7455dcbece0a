import { setTimeout as delay } from 'node:timers/promises'
import type { CommandOutput } from '#cli/command-line/command-line.ts'
import {
  commandName,
  defineCommand,
  fitted,
  listItems,
  messageOf,
  operatorName,
  pageSize,
  printLines,
  readLimit,
  systemUser,
  type Values,
  WrongUsage,
  wholeNumber,
} from '#cli/command-line/command-line.ts'
import { withDatabase } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { Progress } from '#cli/command-line/progress.ts'
import { quoted } from '#cli/init/folder-commands.ts'
import {
  differenceKinds,
  type PlanState,
  type RowState,
  rowStates,
} from '#features/reconciliation/contract/plan-words.ts'
import type { Difference } from '#features/reconciliation/plan/difference.ts'
import { type PlanProgress, ReconciliationPlans } from '#features/reconciliation/service/plans.ts'
import {
  type Drift,
  differencesIn,
  type Plan,
  type PlanRow,
  type StoredLink,
} from '#features/reconciliation/store/plan-record.ts'
import { loginIdentity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { csvLine } from '#kernel/text/csv.ts'

const options = {
  ...databaseOptions,
  state: { value: 'STATE', about: `rows: only rows in this state: ${rowStates.join(', ')}` },
  kind: { value: 'KIND', about: `rows: only ${differenceKinds.join(', ')} accounts` },
  login: { value: 'LOGIN', about: 'rows: only this person or account' },
  csv: { about: 'rows: print CSV, for spreadsheets' },
  limit: { value: 'N', default: '50', about: 'show, rows, links: number of rows' },
  wait: {
    value: 'SECONDS',
    default: '20',
    about: 'plan, apply: how long to wait for a running gateway to begin',
  },
  reason: { value: 'TEXT', about: 'plan, apply, pause, resume, stop, link, unlink: reason, for the audit' },
  by: {
    value: 'NAME',
    about:
      'plan, apply, pause, resume, stop, link, unlink: name of the operator, for the audit (default the system user)',
  },
  ...outputOption,
} as const
type ReconcileValues = Values<typeof options>

export const reconcileCommand = defineCommand({
  name: 'reconcile',
  about: 'Compare two systems by a Reconciliation, and apply the differences. A running gateway does the work.',
  options,
  actions: {
    list: { usage: '[options]', about: 'List reconciliations with their last comparison and last plan', run: list },
    plan: {
      usage: 'NAME [options]',
      arguments: ['NAME'],
      about: 'Compare the systems of a reconciliation, and wait for the plan',
      run: plan,
    },
    show: { usage: 'PLAN [options]', arguments: ['PLAN'], about: 'Show a plan and its first rows', run: show },
    rows: {
      usage: 'PLAN [options]',
      arguments: ['PLAN'],
      about: 'List the rows of a plan: what differs, why, and what became of it',
      run: rows,
    },
    apply: {
      usage: 'PLAN [options]',
      arguments: ['PLAN'],
      about: 'Allow a plan to be applied, and wait for its end',
      run: apply,
    },
    pause: {
      usage: 'PLAN [options]',
      arguments: ['PLAN'],
      about: 'Pause a plan after its current rows',
      run: act('pause'),
    },
    resume: { usage: 'PLAN [options]', arguments: ['PLAN'], about: 'Continue a paused plan', run: act('resume') },
    stop: {
      usage: 'PLAN [options]',
      arguments: ['PLAN'],
      about: 'End a plan; runs that have started continue',
      run: act('stop'),
    },
    link: {
      usage: 'NAME SOURCE [TARGET] [options]',
      arguments: ['NAME', 'SOURCE', '[TARGET]'],
      about: 'Decide which account a person has; without TARGET, that the person has none',
      run: link,
    },
    unlink: {
      usage: 'NAME SOURCE [options]',
      arguments: ['NAME', 'SOURCE'],
      about: 'Forget the decision about a person',
      run: unlink,
    },
    links: { usage: 'NAME [options]', arguments: ['NAME'], about: 'List the decisions about persons', run: links },
  },
  examples: [
    'gatehouse reconcile plan chat',
    'gatehouse reconcile rows PLAN --kind extra',
    'gatehouse reconcile apply PLAN --reason "reviewed with the team"',
    'gatehouse reconcile link chat ada U024BE7LH',
  ],
  describe: (error) => (error instanceof GatewayError && error.isRefusal ? error.publicText : messageOf(error)),
})

/** The command as the operator calls it, for the same database. An address may have a password, so it is left out. */
const commandFor = ({ data, database }: ReconcileValues, words: string): string => {
  const folder = data === databaseOptions.data.default ? '' : ` --data ${quoted(data)}`
  return `${commandName()} reconcile ${words}${database === undefined ? folder : ' --database URL'}`
}

const maxText = 2_000

const withPlans = <T>(values: ReconcileValues, work: (plans: ReconciliationPlans) => Promise<T>): Promise<T> =>
  withDatabase(values, ({ reconciliations: store, accountLinks }) =>
    work(new ReconciliationPlans({ store, links: accountLinks, clock: systemClock })),
  )

/** Throws WrongUsage. */
function readAct({ by, reason }: ReconcileValues) {
  for (const text of [reason, by]) {
    if (text !== undefined && text.length > maxText)
      throw new WrongUsage(`--reason and --by have at most ${maxText} characters`)
  }
  const login = by ?? systemUser()
  return {
    by: { login: operatorName(by), identity: loginIdentity(login), names: [login] },
    ...(reason === undefined || reason === '' ? {} : { reason }),
  }
}

async function list(values: ReconcileValues, _: readonly string[], io: CommandOutput): Promise<void> {
  await withPlans(values, async (plans) => {
    const drift = await plans.drift()
    const last = new Map<string, Plan>()
    for (const plan of await plans.list({ limit: pageSize })) {
      if (!last.has(plan.reconciliation)) last.set(plan.reconciliation, plan)
    }
    const names = [...new Set([...drift.keys(), ...last.keys()])].sort()
    const items = names.map((name) => ({ name, ...drift.get(name), lastPlan: last.get(name) }))
    await io.list(items, {
      lines: ({ name, lastPlan, report, differsSince }) => [
        `${name}${lastPlan === undefined ? '' : `: plan ${lastPlan.id} is ${lastPlan.state}`}`,
        ...(report === undefined ? ['    never compared'] : driftLines({ report, differsSince })),
      ],
      noun: 'plans of reconciliations',
      hint: `Make the first one with "${commandFor(values, 'plan NAME')}".`,
    })
  })
}

const driftLines = ({ report, differsSince }: Drift): string[] => {
  const found = differenceKinds.flatMap((kind) => (report[kind] === 0 ? [] : [`${report[kind]} ${kind}`]))
  const since = differsSince === undefined ? '' : `, differs since ${differsSince.toISOString()}`
  return [`    ${report.at.toISOString()}: ${[`${report.agree} agree`, ...found].join(', ')}${since}`]
}

async function plan(values: ReconcileValues, [name = '']: readonly string[], io: CommandOutput): Promise<number> {
  const act = readAct(values)
  const wait = readWait(values)
  return await withPlans(values, async (plans) => {
    const { plan: requested, isNew } = await plans.request(name, act)
    if (!isNew)
      io.stderr(`The plan ${requested.id} of ${name} is ${requested.state}: it is followed instead of a new one.`)
    return await follow(plans, requested.id, { values, wait }, io)
  })
}

async function apply(values: ReconcileValues, [id = '']: readonly string[], io: CommandOutput): Promise<number> {
  const act = readAct(values)
  const wait = readWait(values)
  return await withPlans(values, async (plans) => {
    await find(plans, id, values)
    await plans.approve(id, act)
    return await follow(plans, id, { values, wait }, io)
  })
}

const pollMillis = 500
/** Throws WrongUsage. */
function readWait({ wait }: ReconcileValues): number {
  const seconds = wholeNumber(wait, 0, 3600)
  if (seconds === undefined) throw new WrongUsage('--wait must be a whole number of seconds, from 0 to 3600')
  return seconds
}

const underWay: ReadonlySet<PlanState> = new Set(['requested', 'comparing', 'applying'])
const succeeded: ReadonlySet<PlanState> = new Set(['planned', 'applied'])

/** Shows how a plan proceeds until it ends or waits. Returns the exit code. */
async function follow(
  plans: ReconciliationPlans,
  id: string,
  { values, wait }: { readonly values: ReconcileValues; readonly wait: number },
  io: CommandOutput,
): Promise<number> {
  const shown = new Progress()
  const started = performance.now()
  try {
    for (;;) {
      const found = await find(plans, id, values)
      const { plan: now, progress } = found
      if (!underWay.has(now.state)) {
        shown.end()
        printLines(planLines(found), io)
        const isOpen = now.state === 'planned' && progress.open > 0
        if (isOpen)
          io.stdout(
            `Review it with "${commandFor(values, `rows ${id}`)}", then run "${commandFor(values, `apply ${id}`)}".`,
          )
        io.result(wirePlan(found))
        return succeeded.has(now.state) && progress.failed === 0 ? 0 : 1
      }
      if (now.worker === undefined && performance.now() - started > wait * 1000) {
        throw new Error(
          `no gateway has taken the plan ${id} within ${wait} seconds: start one that uses this database, or read its log. The plan stays ${now.state}`,
        )
      }
      shown.update(`${now.state}: ${progressText(found)}`)
      await delay(pollMillis)
    }
  } finally {
    shown.end()
  }
}

const progressText = ({ plan: { state, counts }, progress }: PlanProgress): string =>
  state === 'applying'
    ? outcomes(progress).join(', ')
    : `${counts.source} people and ${counts.target} accounts so far, ${differencesIn(counts)} differences`

const outcomes = (progress: Readonly<Record<RowState, number>>): string[] =>
  rowStates.flatMap((state) => (progress[state] === 0 ? [] : [`${progress[state]} ${state}`]))

async function find(plans: ReconciliationPlans, id: string, values: ReconcileValues): Promise<PlanProgress> {
  const found = await plans.get(id)
  if (found !== undefined) return found
  throw new Error(`there is no plan "${id}"; "${commandFor(values, 'list')}" shows the last ones`)
}

async function show(values: ReconcileValues, [id = '']: readonly string[], io: CommandOutput): Promise<void> {
  const limit = readLimit(values.limit)
  await withPlans(values, async (plans) => {
    const found = await find(plans, id, values)
    const first: PlanRow[] = []
    for await (const row of allRows(plans, id, {}, limit)) first.push(row)
    const more = Object.values(found.progress).reduce((sum, count) => sum + count, 0) - first.length
    printLines([...planLines(found), ...(first.length === 0 ? [] : ['']), ...first.flatMap(rowLines)], io)
    if (more > 0) io.stdout(`and ${more} more: "${commandFor(values, `rows ${id}`)}" lists them`)
    io.result({ ...wirePlan(found), rows: first.map(wireRow) })
  })
}

async function rows(values: ReconcileValues, [id = '']: readonly string[], io: CommandOutput): Promise<void> {
  const { login } = values
  const state = readWord('state', values.state, rowStates)
  const kind = readWord('kind', values.kind, differenceKinds)
  const limit = values.csv ? Number.POSITIVE_INFINITY : readLimit(values.limit)
  await withPlans(values, async (plans) => {
    await find(plans, id, values)
    const found = allRows(plans, id, { state, kind, login }, limit)
    if (values.csv) {
      io.stdout(csvText(csvHeader))
      for await (const row of found) io.stdout(csvText(csvFields(row)))
      return
    }
    const lines = (row: PlanRow): string[] => fitted(rowLines(row))
    await io.list(found, { lines, json: wireRow, noun: 'rows', filters: { state, kind, login } })
  })
}

/** Throws WrongUsage. */
function readWord<W extends string>(option: string, given: string | undefined, words: readonly W[]): W | undefined {
  if (given === undefined) return undefined
  const found = words.find((word) => word === given)
  if (found === undefined) throw new WrongUsage(`--${option} must be one of ${words.join(', ')}`)
  return found
}

const allRows = (
  plans: ReconciliationPlans,
  id: string,
  query: Omit<Parameters<ReconciliationPlans['rows']>[1], 'after' | 'limit'>,
  limit: number,
) =>
  listItems(async (most, after) => {
    const items = await plans.rows(id, {
      ...query,
      limit: most,
      after: after === undefined ? undefined : Number(after),
    })
    const last = items.at(-1)
    return { items, next: items.length < most || last === undefined ? undefined : String(last.number) }
  }, limit)

function act(change: 'pause' | 'resume' | 'stop') {
  return async (values: ReconcileValues, [id = '']: readonly string[], io: CommandOutput): Promise<void> => {
    const request = readAct(values)
    await withPlans(values, async (plans) => {
      await find(plans, id, values)
      const { state } = await plans[change](id, request)
      io.stdout(`${id} is ${state}`)
      io.result({ id, state })
    })
  }
}

async function link(
  values: ReconcileValues,
  [reconciliation = '', source = '', target]: readonly string[],
  io: CommandOutput,
): Promise<void> {
  const request = { reconciliation, source, target, ...readAct(values) }
  await withPlans(values, async (plans) => {
    const { unknown, ...stored } = await plans.link(request)
    for (const name of unknown) {
      io.stderr(
        `No row of the last plan of ${reconciliation} has "${name}", so it is stored as given: where a system has ids, it must be the id.`,
      )
    }
    const account = stored.target === undefined ? undefined : named(target, stored.target)
    const given = unknown.length === 0 ? '' : ', stored as given'
    io.stdout(`${linkText({ source: named(source, stored.source), target: account })}${given}`)
    io.result({ reconciliation, ...stored, unknown })
  })
}

async function unlink(
  values: ReconcileValues,
  [reconciliation = '', source = '']: readonly string[],
  io: CommandOutput,
): Promise<void> {
  const request = readAct(values)
  await withPlans(values, async (plans) => {
    if (!(await plans.unlink(reconciliation, source, request)))
      throw new Error(
        `${reconciliation} has no link of "${source}"; "${commandFor(values, `links ${quoted(reconciliation)}`)}" lists them`,
      )
    io.stdout(`${source} is no longer linked`)
    io.result({ reconciliation, source })
  })
}

async function links(values: ReconcileValues, [name = '']: readonly string[], io: CommandOutput): Promise<void> {
  const limit = readLimit(values.limit)
  await withPlans(values, (plans) => {
    const found = listItems(async (most, after) => {
      const items = await plans.links(name, most, after)
      return { items, next: items.length < most ? undefined : items.at(-1)?.source }
    }, limit)
    const lines = (one: StoredLink): string[] => {
      const why = one.reason === undefined ? '' : `: ${one.reason}`
      return fitted([`${linkText(one)} (${one.decidedBy}, ${one.decided.toISOString()}${why})`])
    }
    return io.list(found, { lines, noun: 'links' })
  })
}

const named = (given: string | undefined, id: string): string =>
  given === undefined || given === id ? id : `${given} (${id})`

const linkText = ({ source, target }: Pick<StoredLink, 'source' | 'target'>): string =>
  target === undefined ? `${source} has no account` : `${source} has the account ${target}`

const wirePlan = ({ plan: one, progress }: PlanProgress) => ({ ...one, rowsByState: progress })
const wireRow = ({ plan: _, difference, ...row }: PlanRow) => ({
  ...row,
  ...difference,
  outcome: row.reason,
  reason: difference.reason,
})

function planLines({ plan: one, progress }: PlanProgress): string[] {
  const { id, reconciliation, state, counts, problem, approval, requestedBy, created, compared } = one
  const found = differenceKinds.flatMap((kind) =>
    counts.differences[kind] === 0 ? [] : [`${counts.differences[kind]} ${kind}`],
  )
  const actions = Object.entries(counts.actions).flatMap(([action, count]) =>
    count === 0 ? [] : [`${action} ${count}`],
  )
  return [
    `plan       ${id}`,
    `of         ${reconciliation}`,
    `state      ${state}${problem === undefined ? '' : `: ${problem}`}`,
    `requested  by ${requestedBy}, ${created.toISOString()}`,
    `compared   ${compared === undefined ? 'not to the end: ' : `${compared.toISOString()}: `}${counts.source} people, ${counts.target} accounts`,
    ...(compared === undefined ? [] : [`found      ${[`${counts.agree} agree`, ...found].join(', ')}`]),
    ...(actions.length === 0 ? [] : [`actions    ${actions.join(', ')}`]),
    ...(counts.removes === 0
      ? []
      : [`losing     ${counts.removes} of the changes deactivate an account or take all compared memberships`]),
    ...(approval === undefined
      ? []
      : [
          `approved   by ${approval.by}, ${approval.at.toISOString()}${approval.reason === undefined ? '' : `: ${approval.reason}`}`,
        ]),
    ...(outcomes(progress).length === 0 ? [] : [`rows       ${outcomes(progress).join(', ')}`]),
  ]
}

const shownAttributes = 5

function rowLines({ number, state, difference, reason, run }: PlanRow): string[] {
  const { kind, action, source, target, rule, attributes, groups, candidates = [] } = difference
  const names = [source?.login, target?.login].filter((login) => login !== undefined)
  const outcome = [...(reason === undefined ? [] : [reason]), ...(run === undefined ? [] : [`run ${run}`])]
  return [
    `${number} ${kind}: ${names.join(' → ')}${rule === undefined ? '' : ` (by ${rule})`}, ${action}, ${state}`,
    `    ${difference.reason}`,
    ...attributes.slice(0, shownAttributes).map((one) => `    ${attributeText(one)}`),
    ...(attributes.length > shownAttributes ? [`    and ${attributes.length - shownAttributes} more attributes`] : []),
    ...(groups.add.length === 0 ? [] : [`    joins ${groups.add.join(', ')}`]),
    ...(groups.remove.length === 0 ? [] : [`    leaves ${groups.remove.join(', ')}`]),
    ...(candidates.length === 0 ? [] : [`    candidates: ${candidates.map(candidateText).join(', ')}`]),
    ...(outcome.length === 0 ? [] : [`    ${outcome.join('; ')}`]),
  ]
}

const attributeText = ({ name, from, to }: Difference['attributes'][number]): string =>
  `${name}: ${valuesText(from)} → ${valuesText(to)}`
const valuesText = (values: readonly string[]): string =>
  values.length === 0 ? 'none' : values.map((value) => JSON.stringify(value)).join(', ')
const candidateText = ({ id, login }: NonNullable<Difference['source']>): string =>
  id === undefined ? login : `${login} (${id})`

const csvHeader = [
  'row',
  'kind',
  'action',
  'state',
  'person',
  'person id',
  'account',
  'account id',
  'rule',
  'reason',
  'attributes',
  'joins',
  'leaves',
  'candidates',
  'outcome',
  'run',
]

const csvFields = ({ number, state, difference, reason, run }: PlanRow): (string | undefined)[] => [
  String(number),
  difference.kind,
  difference.action,
  state,
  difference.source?.login,
  difference.source?.id,
  difference.target?.login,
  difference.target?.id,
  difference.rule,
  difference.reason,
  difference.attributes.map(attributeText).join('; '),
  difference.groups.add.join('; '),
  difference.groups.remove.join('; '),
  (difference.candidates ?? []).map(candidateText).join('; '),
  reason,
  run,
]

/** Without the end of the line, which the output adds. */
const csvText = (fields: readonly (string | undefined)[]): string => csvLine(fields).trimEnd()
