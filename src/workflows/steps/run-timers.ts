import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import type { ClaimedTimer, NewTimer } from '#workflows/timers/timer.ts'
import type { TimerHandler, TimerLoop } from '#workflows/timers/timer-loop.ts'

const wake = 'run-wake'
const deadline = 'run-deadline'

/** Continues a waiting run at that time. */
export const wakeTimer = (run: string, at: Date): NewTimer => ({ id: newId(), kind: wake, run, due: { at } })

/** Ends a run that has not ended by then. */
export const deadlineTimer = (run: string, at: Date): NewTimer => ({ id: newId(), kind: deadline, run, due: { at } })

/** The timers of runs themselves. */
export function registerRunTimers(loop: TimerLoop, store: RunStore): void {
  loop.on(wake, wakeRun(store))
  loop.on(deadline, endLateRun(store))
}

const wakeRun =
  (store: RunStore): TimerHandler =>
  async (timer) => {
    if (timer.run === undefined) return 'done'
    return (await store.signal(timer.run, { kind: 'time' }, { doneTimers: [claimOf(timer)] })) ? 'ended' : 'done'
  }

/** A run that has changed something is finished or an incident, unless it waits for a decision or a time. */
const endLateRun =
  (store: RunStore): TimerHandler =>
  async (timer) => {
    const run = timer.run === undefined ? undefined : await store.get(timer.run)
    if (run === undefined || run.ended !== undefined) return 'done'
    // Its step may be changing something.
    if (run.state === 'running') return { again: { inMillis: 1_000 } }
    if (run.touched && run.state !== 'waiting') return 'done'
    try {
      await store.cancel({
        id: run.head.id,
        fence: run.fence,
        onlyUntouched: false,
        outcome: 'expired',
        cancellation: { by: 'gatehouse', reason: 'its deadline has passed' },
        effects: { doneTimers: [claimOf(timer)] },
      })
      return 'ended'
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'CONFLICT') return 'done'
      if (error instanceof GatewayError && error.code === 'VERSION_MISMATCH') return { again: { inMillis: 200 } }
      throw error
    }
  }

const claimOf = ({ id, fence }: ClaimedTimer) => ({ id, fence })
