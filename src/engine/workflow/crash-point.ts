import process from 'node:process'

/**
 * Where a worker can be killed that matters to what is promised: it holds a run; a target was changed and nobody knows
 * of it; all is done but the commit; the commit is durable and nobody was told.
 */
export const crashPoints = ['after-claim', 'after-target-call', 'before-commit', 'after-commit'] as const
export type CrashPoint = (typeof crashPoints)[number]

/** Called at each point by whoever executes runs. */
export type CrashHook = (point: CrashPoint) => void

export const noCrash: CrashHook = () => {}

/**
 * For the chaos harness: with GATEHOUSE_CHAOS=1 the process kills itself, as SIGKILL does, when it passes
 * GATEHOUSE_CHAOS_POINT for the GATEHOUSE_CHAOS_COUNT-th time. In any other environment nothing ever happens.
 */
export function crashHook(environment: Readonly<Record<string, string | undefined>>): CrashHook {
  if (environment['GATEHOUSE_CHAOS'] !== '1') return noCrash
  const wanted = crashPoints.find((point) => point === environment['GATEHOUSE_CHAOS_POINT'])
  if (wanted === undefined) return noCrash
  let left = Math.max(1, Number(environment['GATEHOUSE_CHAOS_COUNT'] ?? 1) || 1)
  return (point) => {
    if (point === wanted && --left === 0) process.kill(process.pid, 'SIGKILL')
  }
}

/**
 * For the chaos harness: how long a process holds what it claimed before others take it, so that nobody waits long for
 * what a killed one held: GATEHOUSE_CHAOS_LEASE_MILLIS, or a multiple of it. Nothing in any other environment.
 */
export function chaosLease(
  environment: Readonly<Record<string, string | undefined>>,
  times = 1,
): { leaseMillis?: number } {
  const chaos = environment['GATEHOUSE_CHAOS'] === '1'
  const millis = chaos ? Number(environment['GATEHOUSE_CHAOS_LEASE_MILLIS']) : Number.NaN
  return millis > 0 ? { leaseMillis: millis * times } : {}
}
