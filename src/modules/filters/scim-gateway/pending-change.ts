import type { Handler } from './route.ts'
import { answer, type ScimCall } from './scim-call.ts'

const schema = 'urn:gatehouse:params:scim:api:messages:1.0:Accepted'

/** The workflow was started and waits, for an approval as a rule: nothing of the change can be shown yet. */
export class ChangePending extends Error {
  readonly run: string

  constructor(run: string) {
    super(`run ${run} waits`)
    this.name = 'ChangePending'
    this.run = run
  }
}

/** Notes that part of what was asked for waits; the call goes on with the rest. Gives whether the change was made. */
export async function orPending(call: ScimCall, change: Promise<unknown>): Promise<boolean> {
  try {
    await change
    return true
  } catch (error) {
    if (!(error instanceof ChangePending)) throw error
    call.notes.pending ??= error.run
    return false
  }
}

/** Answers 202 for a change that waits. */
export const withPending =
  (handler: Handler): Handler =>
  async (call) => {
    try {
      const response = await handler(call)
      return call.notes.pending === undefined ? response : accepted(call.notes.pending)
    } catch (error) {
      if (error instanceof ChangePending) return accepted(error.run)
      throw error
    }
  }

const accepted = (workflowId: string) =>
  answer(202, { schemas: [schema], detail: 'The change was accepted and waits for a decision.', workflowId })
