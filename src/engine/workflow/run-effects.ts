import { newMails } from '#engine/mail/mail-outbox.ts'
import { endedRows } from '#engine/session/session-end-audit.ts'
import type { CollectedEffects, WrittenPassword } from '#engine/workflow/collected-effects.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { newId } from '#kernel/ids.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { NewRun, RunEffects } from '#storage/runs/run-commit.ts'
import type { SessionEnding } from '#storage/session-store.ts'

/** What one step asked for. */
export interface StepWish {
  readonly step: number
  readonly effects: CollectedEffects
}

/** The run that the steps belong to. */
export type EffectRun = Pick<RunProgress, 'id' | 'workflow' | 'requestor' | 'caller' | 'requestId' | 'session'>

/** What steps of a run asked for, as it is committed with them; no properties where there is nothing. */
export async function runEffects(
  by: EffectRun,
  wishes: readonly StepWish[],
  prepare: (call: WorkflowCall) => Promise<NewRun>,
): Promise<Pick<RunEffects, 'mails' | 'grants' | 'starts' | 'endings'>> {
  const run = by.id
  const endings = wishes.flatMap(({ effects }) => effects.passwords.map((password) => endingOf(password, by)))
  const mails = wishes.flatMap(({ step, effects }) => newMails(run, step, effects.mails))
  const grants = wishes.flatMap(({ effects }) => effects.grants.map((access) => ({ ...access, id: newId(), run })))
  const starts: NewRun[] = []
  for (const { effects } of wishes) for (const call of effects.starts) starts.push(await prepare(call))
  return {
    ...(mails.length === 0 ? {} : { mails }),
    ...(grants.length === 0 ? {} : { grants }),
    ...(starts.length === 0 ? {} : { starts }),
    ...(endings.length === 0 ? {} : { endings }),
  }
}

function endingOf({ owners, logins, claim }: WrittenPassword, by: EffectRun): SessionEnding {
  const { id, workflow: name, requestor, caller, requestId, session } = by
  return {
    owners,
    logins,
    ...(session === undefined ? {} : { exceptPublicId: session }),
    ...(claim === undefined ? {} : { settles: { id: claim.id, lease: claim.lease } }),
    audit: (ended) =>
      endedRows(ended, {
        workflow: { id, name },
        requestor,
        ...(caller === undefined || caller === requestor ? {} : { caller }),
        ...(requestId === undefined ? {} : { requestId }),
      }),
  }
}
