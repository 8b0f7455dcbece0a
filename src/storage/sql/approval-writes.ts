import type { UserRef } from '#identity/identity.ts'
import type { NewApproval } from '#storage/approval-store.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { assertStorable, storable } from '#storage/client/text-keys.ts'
import { insertMails } from '#storage/mail-store.ts'
import { approvalStatements } from '#storage/sql/approval-statements.ts'
import { deleteTimersOfRun, insertTimers } from '#storage/timer-store.ts'

/** Opens an approval of a run that waits from the same transaction on. */
export async function insertApproval(
  tx: SqlTransaction,
  run: string,
  approval: NewApproval,
  now: number,
): Promise<void> {
  const { id, step, label, allowSelf, rules, data, accessEnds, newAccount } = approval
  assertStorable('id of the approval', id)
  await tx.run(
    approvalStatements(tx.dialect).insert({
      id,
      run,
      step,
      label: storable(label),
      opened: now,
      allow_self: allowSelf ? 1 : 0,
      rules: JSON.stringify(rules),
      data: JSON.stringify(data),
      access_ends: accessEnds?.getTime() ?? null,
      new_account: newAccount === true ? 1 : 0,
    }),
  )
  await insertApprovers(tx, id, approval.approvers)
  const owned = approval.timers.map((timer) => ({ ...timer, run, approval: id }))
  await insertTimers(tx, owned, now)
  await insertMails(tx, approval.mails, now)
}

/** A user who is named by several logins is one approver. */
export async function insertApprovers(tx: SqlTransaction, approval: string, users: readonly UserRef[]): Promise<void> {
  const byKey = new Map<string, string>(users.map(({ identity, login }) => [identity, storable(login)]))
  const rows = Array.from(byKey, ([approver_key, approver]) => ({ approval, approver_key, approver, open: 1 }))
  for (const query of approvalStatements(tx.dialect).insertApprovers(rows)) await tx.run(query)
}

/** Whatever waits for the run's sake waits no longer. The run is locked by this transaction. */
export async function closeWaits(tx: SqlTransaction, run: string, now: number): Promise<void> {
  const { openOfRun, decide, closeApprovers } = approvalStatements(tx.dialect)
  for (const { id } of await tx.query(openOfRun({ run }))) {
    const nobody = { decided_by: null, decided_identity: null, on_behalf_of: null, comment: null }
    await tx.run(decide({ id, state: 'cancelled', decided: now, ...nobody }))
    await tx.run(closeApprovers({ approval: id }))
  }
  await deleteTimersOfRun(tx, run)
}
