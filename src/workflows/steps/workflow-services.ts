import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import type { PasswordChangeStore } from '#requests/login/password-change-store.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import type { IdempotencyStore } from '#workflows/store/idempotency-store.ts'
import type { RunStore } from '#workflows/store/run-store.ts'

/** What runs of workflows need that outlives a configuration. */
export interface WorkflowServices {
  readonly log: Logger
  readonly clock: Clock
  readonly audit: Pick<AuditStore, 'append' | 'appendWithin' | 'list'>
  /**
   * By login in lower case. Shared by all configurations of the process, so that the order of a subject survives a
   * reload.
   */
  readonly subjects: KeyedQueue
  readonly rateLimits: RateLimits
  readonly runs: RunStore
  readonly idempotency: IdempotencyStore
  readonly secrets: SecretBox
  /** How long a lease lasts before other processes count this one as dead. */
  readonly leaseMillis: number
  readonly observer: StepObserver
  readonly crash: CrashHook
  readonly passwordChanges: PasswordChangeStore
}

/** One execution of one task, even if it failed. */
interface ExecutedStep {
  readonly workflow: string
  readonly taskType: string
  /** `next`, `branch`, `call`, `wait`, `stop`, or `failed` for an attempt that threw. */
  readonly outcome: string
  readonly millis: number
}

/** Notified of every step after its commit, in the process that executed it. Must not throw or do I/O. */
export interface StepObserver {
  executed(step: ExecutedStep): void
  /** A run was claimed that had been due for this long: the age of the queue. */
  claimed(waitedMillis: number): void
}

export const noStepObserver: StepObserver = { executed() {}, claimed() {} }

/** Runs of one subject are executed one at a time, in order of arrival. */
export const subjectQueue = (): KeyedQueue =>
  new KeyedQueue({
    maxPerKey: 65,
    maxPending: 8192,
    waitMillis: 30_000,
    refuse: (reason) =>
      new GatewayError('TOO_MANY_REQUESTS', reason, {
        publicText: 'Too many changes to this user are under way.',
        retryAfter: 5,
      }),
  })

/** Creates the approvals that tasks request, by the rules of one configuration. */
export type ApprovalOpener = Pick<ApprovalDesk, 'open'> & Partial<Pick<ApprovalDesk, 'mailsToDeciders'>>

/**
 * Points of an execution where a crash matters: the worker has claimed a run; a target was changed and that is not
 * yet stored; only the commit is missing; the commit is durable but not yet reported.
 */
export const crashPoints = ['after-claim', 'after-target-call', 'before-commit', 'after-commit'] as const
export type CrashPoint = (typeof crashPoints)[number]

/** Called at each point. Tests inject a hook that kills the process. */
export type CrashHook = (point: CrashPoint) => void

export const noCrash: CrashHook = () => {}
