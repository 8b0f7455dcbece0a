import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import type { MailStore } from '#mail/mail-store.ts'
import type { SessionStore } from '#requests/sessions/session-store.ts'
import type { AuditPart } from '#sdk/audit/audit-entry.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import type { IdempotencyStore } from '#workflows/store/idempotency-store.ts'
import type { JobRunStore } from '#workflows/store/job-run-store.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import type { AuditRetention, DigestMails, MaintenanceTasks, OutcomeMails } from './maintenance-access.ts'

/** What the cleanup deletes. */
interface CleanStores {
  readonly runs: Pick<RunStore, 'prune' | 'pruneDefinitions'>
  readonly mails: Pick<MailStore, 'prune'>
  readonly idempotency: Pick<IdempotencyStore, 'prune'>
  readonly jobRuns: Pick<JobRunStore, 'prune'>
  readonly audit: Pick<AuditStore, 'prune' | 'keptSince'>
  readonly sessions: Pick<SessionStore, 'deleteExpired'>
}

interface MaintenanceParts {
  readonly stores: CleanStores
  readonly clock: Clock
  readonly approvals: Pick<ApprovalDesk, 'remind'>
  mailOutcomes(mails: OutcomeMails): Promise<number>
  mailDigests(mails: DigestMails): Promise<number>
  /** Starts the runs that remove expired access; returns how many. */
  revokeDue(signal: AbortSignal): Promise<number>
}

const dayMillis = 24 * 3600_000

export function createMaintenanceTasks(parts: MaintenanceParts): MaintenanceTasks {
  const { stores, clock, approvals, revokeDue } = parts
  return {
    remindApprovers: ({ days, key, message, mailAttribute, limit }) =>
      approvals.remind({
        openForMillis: days * dayMillis,
        key,
        limit,
        ...(message === undefined ? {} : { message }),
        ...(mailAttribute === undefined ? {} : { mailAttribute }),
      }),
    mailOutcomes: (mails) => parts.mailOutcomes(mails),
    mailDigests: (mails) => parts.mailDigests(mails),
    async cleanUp(retention, signal) {
      const { runs, mails, idempotencyKeys, jobRuns, audit, tokens } = retention
      const removed: Record<string, number> = {}
      const pruneAudit = async (part: AuditPart, { days, records }: AuditRetention): Promise<void> => {
        const byAge = days === undefined ? undefined : new Date(clock().getTime() - days * dayMillis)
        const bySize = records === undefined ? undefined : await stores.audit.keptSince(part, records)
        const before = byAge !== undefined && bySize !== undefined && bySize < byAge ? byAge : (bySize ?? byAge)
        const pruned =
          before === undefined
            ? { removed: 0, waiting: [] }
            : await stores.audit.prune(before, { by: 'gatehouse', part })
        const behind = Math.max(removed['auditSinksBehind'] ?? 0, pruned.waiting.length)
        if (behind > 0) removed['auditSinksBehind'] = behind
        removed[part === 'tokens' ? 'auditTokens' : 'audit'] = pruned.removed
      }
      const work: readonly (readonly [name: string, days: number | undefined, store: Pruned])[] = [
        ['runs', runs, stores.runs],
        // Not before the processes that use one had time to report it.
        [
          'definitions',
          runs === undefined ? undefined : Math.max(1, runs),
          { prune: (at) => stores.runs.pruneDefinitions(at) },
        ],
        ['mails', mails, stores.mails],
        ['idempotencyKeys', idempotencyKeys, stores.idempotency],
        ['jobRuns', jobRuns, stores.jobRuns],
      ]
      for (const [name, days, store] of work) {
        signal.throwIfAborted()
        if (days !== undefined) removed[name] = await store.prune(new Date(clock().getTime() - days * dayMillis))
      }
      for (const [part, kept] of [
        ['others', audit],
        ['tokens', tokens],
      ] as const) {
        signal.throwIfAborted()
        if (kept !== undefined) await pruneAudit(part, kept)
      }
      removed['sessions'] = await stores.sessions.deleteExpired(clock())
      return removed
    },
    revokeExpired: revokeDue,
  }
}

interface Pruned {
  prune(before: Date): Promise<number>
}
