import sql, { join, raw } from 'sql-template-tag'
import { appendToChain } from '#audit/store/audit-chain.ts'
import type { DatabaseReader, DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, dynamic, inserted, ListStatement, RowInsert, statement, withoutNulls } from '#database/statement.ts'
import { assertStorable, isStorable, optionalText, storable } from '#database/text-keys.ts'
import { type Identity, storedIdentity, type UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { insertMails } from '#mail/mail-store.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type {
  Approval,
  ApprovalDecision,
  ApprovalItem,
  ApprovalPage,
  ApprovalPageQuery,
  ApprovalState,
  DecidedPage,
  LatestMessage,
  NewApproval,
  NewRequestMessage,
  OpenApproval,
  OpenApprovalPage,
  OpenApprovalQuery,
  RequestMessage,
} from '#workflows/record/approval.ts'
import type { NewTimer, TimerClaim } from '#workflows/timers/timer.ts'
import { deleteTimersOfApproval, finishTimers, insertTimers } from '#workflows/timers/timer-store.ts'
import { insertMessage, readLatestMessages, readMessages } from './request-message-store.ts'
import { headColumns, headOf, type IdentityColumns, type LockedRun, lockedRun, makeReady } from './run-row.ts'
import { transactionWithWakeUp, type WakeUp } from './wake-up.ts'

const maxIdentities = 200
const maxCursor = 200
const maxPage = 500
const maxApprovers = 1000
const fewRuns = 1_000
/** How many approvers a list names. */
const shownApprovers = 10

export interface Decision {
  readonly approval: string
  /** The version that the decision was made on: its approvers included the user who decides. */
  readonly version: number
  readonly outcome: Exclude<ApprovalState, 'open'>
  /** Absent if a timer decides. */
  readonly by?: UserRef
  /** The approver whose deputy decides. */
  readonly onBehalfOf?: string
  readonly comment?: string
  /** What the run gets when it continues. */
  readonly signal: JsonObject
  readonly audit: readonly AuditEntry[]
  readonly mails?: readonly NewMail[]
  /** The timer that decides. VERSION_MISMATCH when another worker has claimed it. */
  readonly timer?: TimerClaim
}

export interface Reassignment {
  readonly approval: string
  readonly version: number
  /** They replace the previous ones. */
  readonly approvers: readonly UserRef[]
  readonly rules: JsonValue
  readonly escalation: number
  readonly audit: readonly AuditEntry[]
  readonly mails: readonly NewMail[]
  /** Added to those that the approval has. */
  readonly timers: readonly NewTimer[]
  readonly timer?: TimerClaim
}

/** A question or an answer about the request of an open approval. */
interface AddedMessage {
  readonly approval: string
  readonly message: NewRequestMessage
  readonly audit: readonly AuditEntry[]
  readonly mails: readonly NewMail[]
}

export interface ApprovalFigures {
  readonly open: number
  readonly oldestMillis?: number
}

export class ApprovalStore {
  readonly #client: SqlClient
  readonly #wake: WakeUp | undefined

  constructor(client: SqlClient, wake?: WakeUp) {
    this.#client = client
    this.#wake = wake
  }

  async get(id: string): Promise<Approval | undefined> {
    return isStorable(id) ? await readApproval(this.#client, id) : undefined
  }

  /** Of a run, oldest first, at most 500. */
  async listOfRun(run: string): Promise<readonly ApprovalItem[]> {
    if (!isStorable(run)) return []
    return (await listOfRun.all(this.#client, { run })).map(toItem)
  }

  /**
   * Open approvals of any of these approvers, each once. The cost of a page does not grow with the number of open
   * approvals. Throws BAD_REQUEST for more than 200 identities, and for an `after` that is not the `next` of a page.
   */
  async listForApprovers(approvers: readonly Identity[], query: ApprovalPageQuery): Promise<ApprovalPage> {
    const keys = new Set(approvers)
    if (keys.size > maxIdentities) throw new GatewayError('BAD_REQUEST', 'approvals of too many users were requested')
    const { after, limit } = readPageQuery(query)
    const ids = new Set<string>()
    for (const approverKey of keys) {
      const rows = await listIdsOfApprover.all(this.#client, { approverKey, after, limit: limit + 1 })
      for (const { approval } of rows) ids.add(approval)
    }
    const first = [...ids].sort().slice(0, limit)
    const last = first.at(-1)
    const unique = new Map((await findOpenByIds.all(this.#client, {}, first)).map((row) => [row.id, toItem(row)]))
    const approvals = [...unique.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    return ids.size > limit && last !== undefined ? { approvals, next: last } : { approvals }
  }

  /**
   * Approvals that one of these identities decided. Throws BAD_REQUEST for more than 200 identities, and for an `after`
   * that is not the `next` of a page.
   */
  async listDecidedBy(identities: readonly Identity[], query: ApprovalPageQuery): Promise<DecidedPage> {
    const keys = new Set(identities)
    if (keys.size > maxIdentities) throw new GatewayError('BAD_REQUEST', 'decisions of too many users were requested')
    const { limit } = readPageQuery({ limit: query.limit })
    const before = readDecidedCursor(query.after)
    const found: DecidedRow[] = []
    for (const identity of keys) {
      found.push(...(await listDecidedBy.all(this.#client, { identity, ...before, limit: limit + 1 })))
    }
    const sorted = found.sort((a, b) => b.decided - a.decided || (a.id < b.id ? 1 : -1))
    const last = sorted[limit - 1]
    const approvals = sorted.slice(0, limit).map((row) => ({ ...toItem(row), decision: toDecision(row, row.decided) }))
    return sorted.length > limit && last !== undefined
      ? { approvals, next: `${last.decided}.${last.id}` }
      : { approvals }
  }

  /** Throws BAD_REQUEST as `listForApprovers` does. */
  async listOpenOf(query: OpenApprovalQuery): Promise<OpenApprovalPage> {
    const { workflow, approvers, overdueSince } = query
    const { after, limit } = readPageQuery(query)
    if (approvers !== undefined && approvers.length > maxIdentities) {
      throw new GatewayError('BAD_REQUEST', 'approvals of too many users were requested')
    }
    if (approvers?.length === 0 || (workflow !== undefined && !isStorable(workflow))) return { approvals: [] }
    const waiting = workflow === undefined ? undefined : await this.#waitingRuns(workflow)
    if (waiting?.length === 0) return { approvals: [] }
    const conditions = [
      sql`approval.state = 'open' and approval.id > ${after}`,
      waiting === undefined
        ? undefined
        : waiting.length > fewRuns
          ? // The offset keeps PostgreSQL from joining all of them before it sorts.
            sql`exists (select 1 from runs as other where other.id = approval.run and other.name = ${workflow}
              and other.state = 'waiting' limit 1 offset 0)`
          : sql`approval.run in (${join(waiting)})`,
      approvers &&
        sql`approval.id in (select approval from approval_approvers where approver_key in (${join(approvers)}) and open = 1)`,
      overdueSince && sql`(approval.opened < ${overdueSince.getTime()} or approval.escalation > 0)`,
    ].filter((condition) => condition !== undefined)
    const text = sql`select ${raw(listedColumns)} ${raw(withRun)} where ${join(conditions, ' and ')}
      order by approval.id limit ${limit + 1}`
    const rows = await this.#client.query(dynamic<ListedRow>(this.#client.dialect, text))
    const approvals: OpenApproval[] = []
    for (const row of rows.slice(0, limit)) {
      const logins = (await findFirstApprovers.all(this.#client, { approval: row.id })).map(({ approver }) => approver)
      approvals.push({
        ...toItem(row),
        approvers: logins.slice(0, shownApprovers),
        hasMore: logins.length > shownApprovers,
      })
    }
    const last = approvals.at(-1)
    return rows.length > limit && last !== undefined ? { approvals, next: last.id } : { approvals }
  }

  /**
   * The runs of a workflow that wait, one more than `fewRuns` at most. Few of them find their approvals, and of many a page
   * is among the next approvals; no planner knows which it is.
   */
  async #waitingRuns(workflow: string): Promise<readonly string[]> {
    return (await findWaiting.all(this.#client, { workflow, limit: fewRuns + 1 })).map(({ id }) => id)
  }

  /** All open approvals that were opened before then. */
  async listOpen(openedBefore: Date, query: ApprovalPageQuery): Promise<ApprovalPage> {
    const { after, limit } = readPageQuery(query)
    const rows = await listOpen.all(this.#client, { before: openedBefore.getTime(), after, limit: limit + 1 })
    const approvals = rows.slice(0, limit).map(toItem)
    const last = approvals.at(-1)
    return rows.length > limit && last !== undefined ? { approvals, next: last.id } : { approvals }
  }

  /** The latest 1,000 decisions: the workflow, and for how long the approval was open. */
  async latestDecisions(): Promise<readonly { readonly workflow: string; readonly millis: number }[]> {
    return await listDecisions.all(this.#client, {})
  }

  /**
   * Decides once and makes the run `ready`: decision, run, audit, mails and the end of the approval's timers are
   * one transaction. Throws NOT_FOUND; CONFLICT if it is decided or its run no longer waits; VERSION_MISMATCH if it
   * was reassigned meanwhile, or another worker has claimed the timer.
   */
  async decide(decision: Decision): Promise<Approval> {
    const { approval: id, version, outcome, by, onBehalfOf, comment } = decision
    return await transactionWithWakeUp(this.#client, this.#wake, async (tx) => {
      const { run, now } = await lockOpen(tx, id, version)
      close(tx, id, {
        state: outcome,
        decided: now,
        decidedBy: optionalText(by?.login),
        decidedIdentity: by?.identity ?? null,
        onBehalfOf: optionalText(onBehalfOf),
        comment: optionalText(comment),
      })
      if (decision.timer !== undefined) await finishTimers(tx, [decision.timer])
      deleteTimersOfApproval(tx, id)
      makeReady(tx, run, { signal: decision.signal })
      await insertMails(tx, decision.mails ?? [], now)
      const decided = await mustRead(tx, id)
      if (decision.audit.length > 0) await appendToChain(tx, decision.audit)
      return { value: decided, ready: [run] }
    })
  }

  /** Assigns an open approval to other approvers. Throws as `decide` does. */
  async reassign(change: Reassignment): Promise<Approval> {
    const { approval: id, version, approvers, rules, escalation } = change
    return await this.#client.transaction(async (tx) => {
      const { run, now } = await lockOpen(tx, id, version)
      await reassign.run(tx, { id, rules: JSON.stringify(rules), escalation })
      await deleteApprovers.run(tx, { approval: id })
      await insertApprovers(tx, id, approvers)
      await touchRun.run(tx, { run, now })
      if (change.timer !== undefined) await finishTimers(tx, [change.timer])
      const owned = change.timers.map((timer) => ({ ...timer, run, approval: id }))
      await insertTimers(tx, owned, now)
      await insertMails(tx, change.mails, now)
      if (change.audit.length > 0) await appendToChain(tx, change.audit)
      return await mustRead(tx, id)
    })
  }

  /** With its audit and mails. Throws NOT_FOUND, and CONFLICT if the approval is not open or has too many messages. */
  async addMessage({ approval, message, audit, mails }: AddedMessage): Promise<void> {
    await this.#client.transaction(async (tx) => {
      const { run, now } = await lockOpen(tx, approval)
      await insertMessage(tx, run, message, now)
      await touchRun.run(tx, { run, now })
      await insertMails(tx, mails, now)
      if (audit.length > 0) await appendToChain(tx, audit)
    })
  }

  /** Questions and answers about a run, in order. */
  async messagesOf(run: string): Promise<readonly RequestMessage[]> {
    return await readMessages(this.#client, run)
  }

  /** Of each of these runs that has questions, the last message. */
  async latestMessages(runs: readonly string[]): Promise<ReadonlyMap<string, LatestMessage>> {
    return await readLatestMessages(this.#client, runs)
  }

  async figures(): Promise<ApprovalFigures> {
    const { count = 0, age = null } = (await countOpen.first(this.#client, {})) ?? {}
    return { open: count, ...(age === null ? {} : { oldestMillis: age }) }
  }
}

function readPageQuery({ after, limit }: ApprovalPageQuery): { readonly after: string; readonly limit: number } {
  if (after !== undefined && (after.length > maxCursor || !isStorable(after))) {
    throw new GatewayError('BAD_REQUEST', 'not a page of approvals')
  }
  return { after: after ?? '', limit: Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage)) }
}

/** The time and the id of the last approval of a page. */
function readDecidedCursor(after: string | undefined): { readonly decided: number; readonly id: string } {
  if (after === undefined) return { decided: Number.MAX_SAFE_INTEGER, id: '' }
  const [, decided, id] = /^(\d{1,15})\.([\w-]{1,100})$/.exec(after) ?? []
  if (decided === undefined || id === undefined) throw new GatewayError('BAD_REQUEST', 'not a page of decisions')
  return { decided: Number(decided), id }
}

/** Locks the run before it reads the approval, as every transaction does that changes either. */
async function lockOpen(
  tx: DatabaseTransaction,
  id: string,
  version?: number,
): Promise<{ readonly run: string; readonly now: number }> {
  const run = isStorable(id) ? await lockRunOf.first(tx, { id }) : undefined
  const approval = run && (await findById.first(tx, { id }))
  if (run === undefined || approval === undefined) throw new GatewayError('NOT_FOUND', `no approval ${id}`)
  if (approval.state !== 'open' || run.state !== 'waiting') {
    throw new GatewayError('CONFLICT', `the approval ${id} is ${approval.state}, its run ${run.state}`, {
      publicText: 'This has been decided already.',
    })
  }
  if (version !== undefined && approval.version !== version) {
    throw new GatewayError('VERSION_MISMATCH', `the approval ${id} has version ${approval.version}, not ${version}`)
  }
  return { run: run.id, now: run.now }
}

async function mustRead(tx: DatabaseTransaction, id: string): Promise<Approval> {
  const approval = await readApproval(tx, id)
  if (approval === undefined) throw new GatewayError('NOT_FOUND', `no approval ${id}`)
  return approval
}

async function readApproval(reader: DatabaseReader, id: string): Promise<Approval | undefined> {
  const row = await findById.first(reader, { id })
  if (row === undefined) return undefined
  const approvers = await findApprovers.all(reader, { approval: id })
  return toApproval(
    row,
    approvers.map(({ approver, approverKey }) => ({ login: approver, identity: storedIdentity(approverKey) })),
  )
}

/** Opens an approval of a run that waits from this transaction on. */
export async function insertApproval(
  tx: DatabaseTransaction,
  run: string,
  approval: NewApproval,
  now: number,
): Promise<void> {
  const { id, step, label, allowSelf, commentRequired, rules, data, newAccount } = approval
  assertStorable('id of the approval', id)
  insert.send(tx, {
    id,
    run,
    step,
    label: storable(label),
    state: 'open',
    opened: now,
    allowSelf: allowSelf ? 1 : 0,
    rules: JSON.stringify(rules),
    data: JSON.stringify(data),
    newAccount: newAccount === true ? 1 : 0,
    commentRequired: commentRequired === true ? 1 : 0,
    escalation: 0,
    version: 1,
  })
  await insertApprovers(tx, id, approval.approvers)
  const owned = approval.timers.map((timer) => ({ ...timer, run, approval: id }))
  await insertTimers(tx, owned, now)
  await insertMails(tx, approval.mails, now)
}

/** A user with several logins is one approver. */
async function insertApprovers(tx: DatabaseTransaction, approval: string, users: readonly UserRef[]): Promise<void> {
  const byKey = new Map<string, string>(users.map(({ identity, login }) => [identity, storable(login)]))
  const rows = Array.from(byKey, ([approverKey, approver]) => ({ approval, approverKey, approver, open: 1 }))
  insertApproverRows.run(tx, rows)
}

/** Cancels the open approvals of a run that this transaction has locked. */
export async function closeApprovals(tx: DatabaseTransaction, run: string, now: number): Promise<void> {
  const noOne = { decidedBy: null, decidedIdentity: null, onBehalfOf: null, comment: null }
  for (const { id } of await findOpenOfRun.all(tx, { run })) {
    close(tx, id, { state: 'cancelled', decided: now, ...noOne })
  }
}

function close(tx: DatabaseTransaction, id: string, decision: DecisionColumns): void {
  decide.send(tx, { id, ...decision })
  closeApprovers.send(tx, { approval: id })
}

interface DecisionColumns {
  readonly state: ApprovalState
  readonly decided: number | null
  readonly decidedBy: string | null
  readonly decidedIdentity: string | null
  readonly onBehalfOf: string | null
  readonly comment: string | null
}

interface ApprovalRow extends DecisionColumns {
  readonly id: string
  readonly run: string
  readonly step: number
  readonly label: string
  readonly opened: number
  readonly allowSelf: number
  readonly rules: string
  readonly data: string
  readonly newAccount: number
  readonly commentRequired: number
  readonly escalation: number
  readonly version: number
}

const listed = [
  'id',
  'step',
  'label',
  'state',
  'newAccount',
  'commentRequired',
  'opened',
  'escalation',
  'version',
] as const
const content = ['allowSelf', 'rules', 'data'] as const
const decisionColumns = ['decided', 'decidedBy', 'decidedIdentity', 'onBehalfOf', 'comment'] as const
/** With the columns of its run's head. */
type ListedRow = Pick<ApprovalRow, (typeof listed)[number]> & IdentityColumns
type WholeRow = ListedRow & ApprovalRow
type DecidedRow = ListedRow & DecisionColumns & { readonly decided: number }

const toItem = (row: ListedRow): ApprovalItem =>
  withoutNulls({
    id: row.id,
    run: headOf(row),
    step: row.step,
    label: row.label,
    state: row.state,
    newAccount: row.newAccount === 0 ? null : true,
    commentRequired: row.commentRequired === 0 ? null : true,
    opened: new Date(row.opened),
    escalation: row.escalation,
    version: row.version,
  })

const toApproval = (row: WholeRow, approvers: readonly UserRef[]): Approval => ({
  ...toItem(row),
  approvers,
  allowSelf: row.allowSelf !== 0,
  rules: JSON.parse(row.rules) as JsonValue,
  data: JSON.parse(row.data) as JsonObject,
  ...(row.decided === null ? {} : { decision: toDecision(row, row.decided) }),
})

const toDecision = (
  { decidedBy, decidedIdentity, onBehalfOf, comment }: DecisionColumns,
  at: number,
): ApprovalDecision => {
  const isByUser = decidedBy !== null && decidedIdentity !== null
  const by = isByUser ? { login: decidedBy, identity: storedIdentity(decidedIdentity) } : null
  return withoutNulls({ at: new Date(at), by, onBehalfOf, comment })
}

const insert = statement<Omit<ApprovalRow, (typeof decisionColumns)[number]>>(
  `insert into approvals ${inserted(['run', ...listed, ...content])}`,
)
const decide = statement<DecisionColumns & { id: string }>(
  `update approvals set state = :state, decided = :decided, decided_by = :decidedBy,
     decided_identity = :decidedIdentity, on_behalf_of = :onBehalfOf, comment = :comment, version = version + 1
   where id = :id and state = 'open'`,
)
const reassign = statement<Pick<ApprovalRow, 'id' | 'rules' | 'escalation'>>(
  `update approvals set rules = :rules, escalation = :escalation, version = version + 1 where id = :id and state = 'open'`,
)
/** Open portals look for runs that changed. */
const touchRun = statement<{ run: string; now: number }>(`update runs set updated = :now where id = :run`)
const findOpenOfRun = statement<{ run: string }, { id: string }>(
  `select id from approvals where run = :run and state = 'open'`,
)
const findWaiting = statement<{ workflow: string; limit: number }, { id: string }>(
  `select id from runs where name = :workflow and state = 'waiting' order by seq limit :limit`,
)
const lockRunOf = statement<{ id: string }, LockedRun>((on) =>
  lockedRun(on, '(select run from approvals where id = :id)'),
)

const listedColumns = `${columns(listed, 'approval')}, ${headColumns('run')}`
const withRun = `from approvals as approval join runs as run on run.id = approval.run`

const findById = statement<{ id: string }, WholeRow>(
  `select ${listedColumns}, ${columns([...content, ...decisionColumns], 'approval')} ${withRun} where approval.id = :id`,
)
const listOfRun = statement<{ run: string }, ListedRow>(
  `select ${listedColumns} ${withRun} where approval.run = :run order by approval.id limit ${maxPage}`,
)
const findOpenByIds = new ListStatement<object, string, ListedRow>(
  `select ${listedColumns} ${withRun} where approval.id in (:list) and approval.state = 'open'`,
)
/** Reads one range of the index, as long as the page. */
const listDecidedBy = statement<{ identity: string; decided: number; id: string; limit: number }, DecidedRow>(
  `select ${listedColumns}, ${columns(decisionColumns, 'approval')} ${withRun}
   where approval.decided_identity = :identity and approval.decided_identity is not null
     and (approval.decided, approval.id) < (cast(:decided as bigint), :id)
   order by approval.decided desc, approval.id desc limit :limit`,
)
const listOpen = statement<{ before: number; after: string; limit: number }, ListedRow>(
  `select ${listedColumns} ${withRun}
   where approval.state = 'open' and approval.opened < :before and approval.id > :after
   order by approval.id limit :limit`,
)
/** Reads the end of one index, and no more rows than that. */
const listDecisions = statement<object, { workflow: string; millis: number }>(
  `select run.name as workflow, latest.decided - latest.opened as millis
   from (select run, state, opened, decided from approvals where decided is not null
     order by decided desc limit 1000) as latest
   join runs as run on run.id = latest.run where latest.state <> 'cancelled'`,
)
const countOpen = statement<object, { count: number; age: number | null }>(
  (on) => `select count(*) as count, ${on.now} - min(opened) as age from approvals where state = 'open'`,
)

interface ApproverRow {
  readonly approval: string
  readonly approverKey: string
  readonly approver: string
  readonly open: number
}

const insertApproverRows = new RowInsert<ApproverRow>('approval_approvers', [
  'approval',
  'approverKey',
  'approver',
  'open',
])
const deleteApprovers = statement<{ approval: string }>(`delete from approval_approvers where approval = :approval`)
const closeApprovers = statement<{ approval: string }>(
  `update approval_approvers set open = 0 where approval = :approval`,
)
const findApprovers = statement<{ approval: string }, Pick<ApproverRow, 'approver' | 'approverKey'>>(
  `select ${columns(['approver', 'approverKey'])} from approval_approvers where approval = :approval
   order by approver_key limit ${maxApprovers}`,
)
const findFirstApprovers = statement<{ approval: string }, Pick<ApproverRow, 'approver'>>(
  `select approver from approval_approvers where approval = :approval order by approver_key limit ${shownApprovers + 1}`,
)
/** Reads one range of the index, as long as the page. */
export const listIdsOfApprover = statement<{ approverKey: string; after: string; limit: number }, { approval: string }>(
  `select approval from approval_approvers where approver_key = :approverKey and open = 1 and approval > :after
   order by approval limit :limit`,
)
