import type { ApprovalDesk } from '#engine/approvals/approval-desk.ts'
import type { CrashHook } from '#engine/workflow/crash-point.ts'
import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import type { StepObserver } from '#engine/workflow/step-observer.ts'
import type { SubjectQueue } from '#engine/workflow/subject-queue.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { AuditStore } from '#storage/audit-store.ts'
import type { IdempotencyStore } from '#storage/idempotency-store.ts'
import type { PasswordChangeStore } from '#storage/password-change-store.ts'
import type { RunStore } from '#storage/run-store.ts'

/** What runs of workflows need that outlives a configuration. */
export interface WorkflowServices {
  readonly log: Logger
  readonly clock: Clock
  readonly audit: Pick<AuditStore, 'append' | 'appendWithin' | 'list'>
  /** Shared by all configurations of the process, so that order per subject survives a reload. */
  readonly subjects: SubjectQueue
  readonly runs: RunStore
  readonly idempotency: IdempotencyStore
  readonly secrets: SecretBox
  /** For how long a process holds what it executes before others take it for dead. */
  readonly leaseMillis: number
  readonly observer: StepObserver
  readonly crash: CrashHook
  readonly passwordChanges: PasswordChangeStore
}

/** Makes approvals of what tasks ask for, by the rules of one configuration. */
export type ApprovalOpener = Pick<ApprovalDesk, 'open'> & Partial<Pick<ApprovalDesk, 'mailsToDeciders'>>
