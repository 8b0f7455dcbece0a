import { expect, test, vi } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { type BackgroundParts, BackgroundWork } from '#server/background-work.ts'
import { TimerLoop } from '#workflows/timers/timer-loop.ts'

test('closing ends the wake-up even if another part fails to close', async () => {
  vi.spyOn(TimerLoop.prototype, 'close').mockRejectedValueOnce(new Error('the timers did not end'))
  const close = vi.fn(async () => {})
  const parts = {
    storage: { timers: {}, mails: { claim: async () => [] } },
    services: { log: silentLogger, clock: () => new Date(0), runs: {} },
    running: {},
    wakeUp: { start: async () => {}, close },
    limits: {},
    mailMeter: {},
    leases: { timers: {}, mails: {} },
  } as unknown as BackgroundParts
  const work = new BackgroundWork(parts)
  await expect(work.close()).rejects.toThrow('the timers did not end')
  expect(close).toHaveBeenCalledOnce()
})
