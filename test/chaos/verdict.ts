import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { Storage } from '#server/composition/stores.ts'
import type { StoredRun } from '#workflows/record/run.ts'
import type { Effect, HostileTarget } from './hostile-target.ts'
import type { Mailbox } from './mailbox.ts'
import type { Submission } from './workload.ts'

/** Approved or denied, and executed to its end. */
const isDone = (state: string): boolean => state === 'completed' || state === 'denied'

export interface JudgedStorage {
  readonly runs: Pick<Storage['runs'], 'get'>
  readonly audit: Pick<Storage['audit'], 'export' | 'verify'>
  readonly mails: Pick<Storage['mails'], 'figures'>
}

export interface Evidence {
  readonly submissions: readonly Submission[]
  readonly storage: JudgedStorage
  readonly target: Pick<HostileTarget, 'effects' | 'repeated'>
  readonly mailbox: Pick<Mailbox, 'taken'>
  /** How often an answer said that the caller decided an approval. */
  readonly decided: ReadonlyMap<string, number>
}

export interface Verdict {
  /** The printed figures. */
  readonly figures: Readonly<Record<string, number>>
  /** Empty if every promise was kept. */
  readonly broken: readonly string[]
  /** Incidents by subject, with their number. */
  readonly incidents: ReadonlyMap<string, number>
}

/** Compares the evidence with the promises. */
export async function judge(evidence: Evidence): Promise<Verdict> {
  const { submissions, storage, target, mailbox, decided } = evidence
  const broken: string[] = []
  const acknowledged = submissions.filter(({ run }) => run !== undefined)
  const runs = new Map<string, StoredRun | undefined>()
  for (const { run } of acknowledged) if (run !== undefined) runs.set(run, await storage.runs.get(run))
  const stateOf = ({ run, status }: Submission): string =>
    status === 200 ? 'completed' : (runs.get(run ?? '')?.state ?? 'missing')
  const stages = groupBy(target.effects, ({ ticket, stage }) => `${ticket} ${stage}`)
  const rows = await allRows(storage)

  const lost = acknowledged.filter((one) => !isDone(stateOf(one)) && stateOf(one) !== 'incident')
  for (const one of lost) {
    const { code, message } = runs.get(one.run ?? '')?.incident ?? {}
    const reason = code === undefined ? '' : `: ${code}: ${message}`
    broken.push(`lost: ${one.ticket} (${one.kind}) is ${stateOf(one)}, run ${one.run}${reason}`)
  }
  for (const one of acknowledged) {
    if (one.otherRuns.size > 0)
      broken.push(`two runs: ${one.ticket} is ${one.run} and ${[...one.otherRuns].join(', ')}`)
    if (one.kind === 'poison' && isDone(stateOf(one))) broken.push(`${one.ticket} cannot be completed`)
  }
  const doubled = [...stages].filter(([, effects]) => effects.length > 1)
  for (const [stage, effects] of doubled)
    broken.push(`doubled: ${stage} by ${effects.map(({ key }) => key).join(', ')}`)
  broken.push(...missingEffects(acknowledged, stateOf, stages))
  broken.push(...wrongKeys(acknowledged, target.effects))
  broken.push(...wrongOrder(submissions, target.effects, stateOf))

  const decisions = groupBy(
    rows.filter(
      ({ approval, attribute, value }) =>
        approval !== undefined && attribute === 'approval' && (value === 'approved' || value === 'denied'),
    ),
    ({ approval }) => approval ?? '',
  )
  for (const [approval, made] of decisions) if (made.length > 1) broken.push(`approval ${approval} was decided twice`)
  for (const [approval, times] of decided)
    if (times > 1) broken.push(`approval ${approval}: ${times} were told to have decided`)

  const audit = await storage.audit.verify()
  for (const problem of audit.problems) broken.push(`audit: ${JSON.stringify(problem)}`)
  const unaudited = unauditedEffects(target.effects, rows)
  const written = new Set<Effect>()
  for (const effect of unaudited) {
    const { ticket, stage, key } = effect
    if (await isWrittenDown(storage, effect)) written.add(effect)
    else broken.push(`no audit of ${ticket} ${stage} (${key})`)
  }

  const mails = [...mailbox.taken.values()].filter(({ subject }) => subject.startsWith('done '))
  for (const [mail, same] of groupBy(mails, ({ recipient, subject }) => `${recipient} ${subject}`)) {
    if (same.length > 1) broken.push(`mailed twice: ${mail}`)
  }
  for (const [id, { subject, times }] of mailbox.taken) {
    if (times > 1) broken.push(`mailed ${times} times under one id: ${subject} (${id})`)
  }
  const { queued, unknown } = await storage.mails.figures()
  const missing = missingMails(acknowledged, stateOf, stages, mails)
  // An administrator sees a mail with an unknown outcome; only the mailbox knows whether it arrived.
  if (missing.length > unknown) broken.push(...missing)

  const incidents = new Map<string, number>()
  for (const one of acknowledged) {
    const incident = runs.get(one.run ?? '')?.incident
    if (incident === undefined) continue
    const text = `${one.kind}: ${incident.code}: ${incident.message.slice(0, 120)}`
    incidents.set(text, (incidents.get(text) ?? 0) + 1)
  }

  return {
    broken,
    incidents,
    figures: {
      acknowledged: acknowledged.length,
      completed: acknowledged.filter((one) => isDone(stateOf(one))).length,
      incidents: acknowledged.filter((one) => stateOf(one) === 'incident').length,
      lost: lost.length,
      doubled: doubled.length,
      effects: target.effects.length,
      'calls recognised by their key': target.repeated,
      approvals: decisions.size,
      mails: mails.length,
      'mails of unknown fate, for an administrator': unknown,
      'mails queued': queued,
      'audit records': audit.checked,
      'effects that an incident will find when it is retried': written.size,
    },
  }
}

/** The run is an incident, and its next attempt will look for this change. */
async function isWrittenDown(storage: JudgedStorage, { key, stage, ticket }: Effect): Promise<boolean> {
  const run = await storage.runs.get(key.slice(0, key.indexOf('/')))
  const plannedChanges = run?.data?.['plannedChanges']
  if (run?.state !== 'incident' || !Array.isArray(plannedChanges)) return false
  return (plannedChanges as readonly Partial<AuditEntry>[]).some(
    ({ attribute, value }) => attribute === stage && value === ticket,
  )
}

function missingEffects(
  acknowledged: readonly Submission[],
  stateOf: (one: Submission) => string,
  stages: ReadonlyMap<string, readonly Effect[]>,
): string[] {
  return acknowledged.flatMap((one) => {
    if (!isDone(stateOf(one))) return []
    const has = (stage: string): boolean => stages.has(`${one.ticket} ${stage}`)
    if (has('stage2') && has('denied')) return [`${one.ticket} was both approved and denied`]
    const last = one.kind === 'approved' && has('denied') ? 'denied' : 'stage2'
    return ['stage1', last]
      .filter((stage) => !has(stage))
      .map((stage) => `no effect: ${one.ticket} ${stage}, run ${one.run}`)
  })
}

/**
 * Every call of a stored run's step used the run's own key. Synchronous calls are exempt: one that failed part way is
 * repeated, and the run that ends it finds the earlier effects.
 */
function wrongKeys(acknowledged: readonly Submission[], effects: readonly Effect[]): string[] {
  const stored = acknowledged.filter(({ status, kind }) => status === 202 && kind !== 'synchronous')
  const runOf = new Map(stored.map(({ ticket, run }) => [ticket, run ?? '']))
  return effects.flatMap(({ ticket, stage, key }) => {
    const run = runOf.get(ticket)
    return run === undefined || key.startsWith(`${run}/`)
      ? []
      : [`key: ${ticket} ${stage} of run ${run} came as ${key}`]
  })
}

/** Calls about one user, each made after the previous one was acknowledged, had their effects in that order. */
function wrongOrder(
  submissions: readonly Submission[],
  effects: readonly Effect[],
  stateOf: (one: Submission) => string,
): string[] {
  const places = new Map(submissions.map((one) => [one.ticket, one]))
  const last = new Map<string, number>()
  return effects.flatMap(({ user, ticket }) => {
    const one = places.get(ticket)
    if (one === undefined || !isDone(stateOf(one))) return []
    const before = last.get(user) ?? 0
    last.set(user, one.place)
    return one.place < before ? [`order: ${ticket} came behind a later call about ${user}`] : []
  })
}

/** Effects without an audit entry. */
function unauditedEffects(effects: readonly Effect[], rows: readonly AuditEntry[]): Effect[] {
  const ofTarget = rows.filter(({ target }) => target === 'crm')
  const told = new Set(ofTarget.map(({ subject, attribute, value }) => `${subject} ${attribute} ${value}`))
  return effects.filter(({ user, stage, ticket }) => !told.has(`${user} ${stage} ${ticket}`))
}

function missingMails(
  acknowledged: readonly Submission[],
  stateOf: (one: Submission) => string,
  stages: ReadonlyMap<string, unknown>,
  mails: readonly { readonly subject: string }[],
): string[] {
  const sent = new Set(mails.map(({ subject }) => subject))
  return acknowledged.flatMap((one) => {
    const mailed = one.kind === 'nested' || (one.kind === 'approved' && stages.has(`${one.ticket} stage2`))
    if (!mailed || !isDone(stateOf(one)) || sent.has(`done ${one.ticket}`)) return []
    return [`no mail about ${one.ticket}`]
  })
}

async function allRows(storage: JudgedStorage): Promise<AuditEntry[]> {
  const rows: AuditEntry[] = []
  let after: string | undefined
  do {
    const page = await storage.audit.export({ limit: 500, ...(after === undefined ? {} : { after }) })
    for (const record of page.records) rows.push(...record.rows)
    after = page.next
  } while (after !== undefined)
  return rows
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}
