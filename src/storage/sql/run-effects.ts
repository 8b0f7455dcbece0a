import { GatewayError } from '#kernel/errors.ts'
import { appendToChain } from '#storage/audit/audit-chain.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { insertGrants, revokeGrants } from '#storage/grant-store.ts'
import { answerKey } from '#storage/idempotency-store.ts'
import { insertMails } from '#storage/mail-store.ts'
import type { NewRun, RunClaim, RunEffects } from '#storage/run-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixedInserts } from '#storage/sql/queries.ts'
import type { StepRow } from '#storage/sql/run-records.ts'
import { newRunValues, stepColumns, toStepRow } from '#storage/sql/run-records.ts'
import { runStatements } from '#storage/sql/run-statements.ts'
import { endAfterPassword, voidLinks } from '#storage/sql/sql-password-change-store.ts'
import { insertTimers } from '#storage/timer-store.ts'

const insertSteps = perDialect((dialect) =>
  fixedInserts<StepRow>(dialect, stepColumns, (db, rows) => db.insertInto('steps').values(rows)),
)

/** The time at which the run is entered. Throws CONFLICT when its id exists. */
export async function insertRun(tx: SqlTransaction, run: NewRun): Promise<number> {
  const [row] = await tx.query(runStatements(tx.dialect).insert(newRunValues(run)))
  return row?.created ?? 0
}

/** It may be claimed. */
export const isReady = ({ state }: NewRun): boolean => state === undefined || state.state === 'ready'

async function forgetRun(tx: SqlTransaction, { id, fence }: RunClaim): Promise<void> {
  if ((await tx.run(runStatements(tx.dialect).forget({ id, fence }))) > 0) return
  throw new GatewayError('VERSION_MISMATCH', `the claim ${fence} of run ${id} is void`)
}

/**
 * Writes everything that goes along with a run's state; `run` is absent where there is no stored one. The runs that are
 * ready from now on. To come after the run itself was locked and timers were ended; the audit's head, which others may
 * wait for, comes last.
 */
export async function writeEffects(
  tx: SqlTransaction,
  effects: RunEffects,
  now: number,
  run?: string,
): Promise<readonly string[]> {
  const ready: string[] = []
  if (run !== undefined && effects.steps !== undefined) {
    const rows = effects.steps.map((step) => toStepRow(run, step))
    for (const query of insertSteps(tx.dialect)(rows)) await tx.run(query)
  }
  if (effects.forgets !== undefined) await forgetRun(tx, effects.forgets)
  if (effects.revokes !== undefined) await revokeGrants(tx, effects.revokes)
  for (const started of effects.starts ?? []) {
    await insertRun(tx, started)
    if (isReady(started)) ready.push(started.id)
  }
  if (effects.timers !== undefined) await insertTimers(tx, effects.timers, now)
  if (effects.grants !== undefined) await insertGrants(tx, effects.grants, now)
  if (effects.mails !== undefined) await insertMails(tx, effects.mails, now)
  if (effects.answer !== undefined) await answerKey(tx, effects.answer)
  const audit = [...(effects.audit ?? [])]
  for (const ending of effects.endings ?? []) {
    await voidLinks(tx, ending.owners)
    audit.push(...(await endAfterPassword(tx, ending)).audit)
  }
  if (audit.length > 0) await appendToChain(tx, audit)
  return ready
}
