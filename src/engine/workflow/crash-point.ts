/**
 * Points of an execution where a crash matters: the worker has claimed a run; a target was changed and that is not
 * yet stored; only the commit is missing; the commit is durable but not yet reported.
 */
export const crashPoints = ['after-claim', 'after-target-call', 'before-commit', 'after-commit'] as const
export type CrashPoint = (typeof crashPoints)[number]

/** Called at each point. Tests inject a hook that kills the process. */
export type CrashHook = (point: CrashPoint) => void

export const noCrash: CrashHook = () => {}
