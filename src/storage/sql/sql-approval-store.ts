import { type Identity, storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type {
  Approval,
  ApprovalFigures,
  ApprovalPage,
  ApprovalPageQuery,
  ApprovalStore,
  ApprovalSummary,
  Decision,
  Reassignment,
} from '#storage/approval-store.ts'
import { appendToChain } from '#storage/audit/audit-chain.ts'
import type { SqlClient, SqlReader, SqlTransaction } from '#storage/client/sql-client.ts'
import { isStorable, optionalText } from '#storage/client/text-keys.ts'
import { insertMails } from '#storage/mail-store.ts'
import { toApproval, toApprovalSummary, type WholeApprovalRow } from '#storage/sql/approval-records.ts'
import { approvalReads, approvalStatements, approverPage, maxPage } from '#storage/sql/approval-statements.ts'
import { insertApprovers } from '#storage/sql/approval-writes.ts'
import { runStatements } from '#storage/sql/run-statements.ts'
import { transactionWithWakeUp, type WakeUp } from '#storage/sql/wake-up.ts'
import { deleteTimersOfApproval, finishTimers, insertTimers } from '#storage/timer-store.ts'

const maxIdentities = 200
const maxCursor = 200

export class SqlApprovalStore implements ApprovalStore {
  readonly #client: SqlClient
  readonly #wake: WakeUp | undefined

  constructor(client: SqlClient, wake?: WakeUp) {
    this.#client = client
    this.#wake = wake
  }

  async get(id: string): Promise<Approval | undefined> {
    return isStorable(id) ? await readApproval(this.#client, id) : undefined
  }

  async listOfRun(run: string): Promise<readonly ApprovalSummary[]> {
    if (!isStorable(run)) return []
    return (await this.#client.query(approvalReads(this.#client.dialect).ofRun({ run }))).map(toApprovalSummary)
  }

  async listForApprovers(approvers: readonly Identity[], query: ApprovalPageQuery): Promise<ApprovalPage> {
    const keys = new Set(approvers)
    if (keys.size > maxIdentities) throw new GatewayError('BAD_REQUEST', 'approvals of too many users were requested')
    const { after, limit } = pageOf(query)
    const ids = new Set<string>()
    for (const approver_key of keys) {
      const rows = await this.#client.query(
        approverPage(this.#client.dialect)({ approver_key, after, limit: limit + 1 }),
      )
      for (const { approval } of rows) ids.add(approval)
    }
    const first = [...ids].sort().slice(0, limit)
    const last = first.at(-1)
    const approvals: ApprovalSummary[] = []
    for (const each of approvalReads(this.#client.dialect).byIds({}, first)) {
      approvals.push(...(await this.#client.query(each)).map(toApprovalSummary))
    }
    const unique = new Map(approvals.map((approval) => [approval.id, approval]))
    const ordered = [...unique.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    return ids.size > limit && last !== undefined ? { approvals: ordered, next: last } : { approvals: ordered }
  }

  async listOpen(openedBefore: Date, query: ApprovalPageQuery): Promise<ApprovalPage> {
    const { after, limit } = pageOf(query)
    const statement = approvalReads(this.#client.dialect).allOpen
    const rows = await this.#client.query(statement({ before: openedBefore.getTime(), after, limit: limit + 1 }))
    const approvals = rows.slice(0, limit).map(toApprovalSummary)
    const last = approvals.at(-1)
    return rows.length > limit && last !== undefined ? { approvals, next: last.id } : { approvals }
  }

  async decide(decision: Decision): Promise<Approval> {
    const { approval: id, version, outcome } = decision
    return await transactionWithWakeUp(this.#client, this.#wake, async (tx) => {
      const { run, now } = await lockOpen(tx, id, version)
      const { decide, closeApprovers } = approvalStatements(tx.dialect)
      await tx.run(
        decide({
          id,
          state: outcome,
          decided: now,
          decided_by: optionalText(decision.by?.login),
          decided_identity: decision.by?.identity ?? null,
          on_behalf_of: optionalText(decision.onBehalfOf),
          comment: optionalText(decision.comment),
        }),
      )
      await tx.run(closeApprovers({ approval: id }))
      if (decision.timer !== undefined) await finishTimers(tx, [decision.timer])
      await deleteTimersOfApproval(tx, id)
      await tx.run(runStatements(tx.dialect).goOn({ id: run, signal: JSON.stringify(decision.signal), data: null }))
      await insertMails(tx, decision.mails ?? [], now)
      if (decision.audit.length > 0) await appendToChain(tx, decision.audit)
      return { value: await mustRead(tx, id), ready: [run] }
    })
  }

  async reassign(change: Reassignment): Promise<Approval> {
    const { approval: id, version, approvers, rules, escalation } = change
    return await this.#client.transaction(async (tx) => {
      const { run, now } = await lockOpen(tx, id, version)
      const { reassign, removeApprovers } = approvalStatements(tx.dialect)
      await tx.run(reassign({ id, rules: JSON.stringify(rules), escalation }))
      await tx.run(removeApprovers({ approval: id }))
      await insertApprovers(tx, id, approvers)
      if (change.timer !== undefined) await finishTimers(tx, [change.timer])
      const owned = change.timers.map((timer) => ({ ...timer, run, approval: id }))
      await insertTimers(tx, owned, now)
      await insertMails(tx, change.mails, now)
      if (change.audit.length > 0) await appendToChain(tx, change.audit)
      return await mustRead(tx, id)
    })
  }

  async figures(): Promise<ApprovalFigures> {
    const [row] = await this.#client.query(approvalReads(this.#client.dialect).figures({}))
    const { count = 0, age = null } = row ?? {}
    return { open: count, ...(age === null ? {} : { oldestMillis: age }) }
  }
}

function pageOf({ after, limit }: ApprovalPageQuery): { readonly after: string; readonly limit: number } {
  if (after !== undefined && (after.length > maxCursor || !isStorable(after))) {
    throw new GatewayError('BAD_REQUEST', 'not a page of approvals')
  }
  return { after: after ?? '', limit: Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage)) }
}

/**
 * Locks the run and then looks at its approval, as everybody does who changes either, so that of those who come at the
 * same time the second sees what the first did.
 */
async function lockOpen(
  tx: SqlTransaction,
  id: string,
  version: number,
): Promise<{ readonly run: string; readonly now: number }> {
  const [known] = isStorable(id) ? await tx.query(approvalStatements(tx.dialect).runOf({ id })) : []
  const [run] = known === undefined ? [] : await tx.query(runStatements(tx.dialect).lock({ id: known.run }))
  const [approval] = run === undefined ? [] : await tx.query(approvalReads(tx.dialect).get({ id }))
  if (run === undefined || approval === undefined) throw new GatewayError('NOT_FOUND', `no approval ${id}`)
  if (approval.state !== 'open' || run.state !== 'waiting') {
    throw new GatewayError('CONFLICT', `the approval ${id} is ${approval.state}, its run ${run.state}`, {
      publicText: 'This has been decided already.',
    })
  }
  if (approval.version !== version) {
    throw new GatewayError('VERSION_MISMATCH', `the approval ${id} has version ${approval.version}, not ${version}`)
  }
  return { run: run.id, now: run.now }
}

async function mustRead(tx: SqlTransaction, id: string): Promise<Approval> {
  const approval = await readApproval(tx, id)
  if (approval === undefined) throw new GatewayError('NOT_FOUND', `no approval ${id}`)
  return approval
}

async function readApproval(reader: SqlReader, id: string): Promise<Approval | undefined> {
  const { get, approvers } = approvalReads(reader.dialect)
  const [row]: WholeApprovalRow[] = await reader.query(get({ id }))
  if (row === undefined) return undefined
  const found = await reader.query(approvers({ approval: id }))
  return toApproval(
    row,
    found.map(({ approver, approver_key }) => ({ login: approver, identity: storedIdentity(approver_key) })),
  )
}
