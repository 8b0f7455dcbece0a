import { newMails } from '#engine/mail/mail-outbox.ts'
import type { CollectedEffects } from '#engine/workflow/collected-effects.ts'
import { newId } from '#kernel/ids.ts'
import type { WorkflowCall } from '#sdk/workflow.ts'
import type { NewRun, RunEffects } from '#storage/run-store.ts'

/** What one step asked for. */
export interface StepWish {
  readonly step: number
  readonly effects: CollectedEffects
}

/** What steps of a run asked for, as it is committed with them; no properties where there is nothing. */
export async function runEffects(
  run: string,
  wishes: readonly StepWish[],
  prepare: (call: WorkflowCall) => Promise<NewRun>,
): Promise<Pick<RunEffects, 'mails' | 'grants' | 'starts'>> {
  const mails = wishes.flatMap(({ step, effects }) => newMails(run, step, effects.mails))
  const grants = wishes.flatMap(({ effects }) => effects.grants.map((access) => ({ ...access, id: newId(), run })))
  const starts: NewRun[] = []
  for (const { effects } of wishes) for (const call of effects.starts) starts.push(await prepare(call))
  return {
    ...(mails.length === 0 ? {} : { mails }),
    ...(grants.length === 0 ? {} : { grants }),
    ...(starts.length === 0 ? {} : { starts }),
  }
}
