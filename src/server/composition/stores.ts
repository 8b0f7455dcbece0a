import { join } from 'node:path'
import { AuditSinkStore } from '#audit/store/audit-sink-store.ts'
import { AuditStore } from '#audit/store/audit-store.ts'
import type { AuditKey } from '#database/audit-seal.ts'
import { AuditSeal } from '#database/audit-seal.ts'
import { Databases, readAddress, type TransactionMeter } from '#database/databases.ts'
import type { MigrationPolicy } from '#database/migrations.ts'
import { statement } from '#database/statement.ts'
import { UserDirectoryStore } from '#directory/store/user-directory-store.ts'
import { SecondFactorStore } from '#features/account/second-factors/second-factor-store.ts'
import { IssuerStore } from '#features/issuer/service/issuer-store.ts'
import { PortalStore } from '#features/portal/access/portal-store.ts'
import { StatisticsStore } from '#features/portal/statistics/statistics-store.ts'
import { FeedStore } from '#features/reconciliation/store/feed-store.ts'
import { LinkStore } from '#features/reconciliation/store/link-store.ts'
import { ReconciliationStore } from '#features/reconciliation/store/reconciliation-store.ts'
import { RegistrationStore } from '#features/registration/service/registration-store.ts'
import { ReportStore } from '#features/reports/store/report-store.ts'
import { EventStore } from '#features/scim/events/event-store.ts'
import { JournalStore } from '#features/scim/journal/journal-store.ts'
import { TenantStore } from '#features/scim/tenants/tenant-store.ts'
import { ClientTokenStore } from '#features/scim/tokens/client-token-store.ts'
import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { KeyStore } from '#keys/key-store.ts'
import { MailStore } from '#mail/mail-store.ts'
import { NotificationStore } from '#mail/notification-store.ts'
import { LoginFailureStore } from '#requests/login/login-failure-store.ts'
import { LoginStore } from '#requests/login/login-store.ts'
import { PasswordChangeStore } from '#requests/login/password-change-store.ts'
import { RateLimitStore } from '#requests/login/rate-limit-store.ts'
import { SessionStore } from '#requests/sessions/session-store.ts'
import { refuseLeftover } from '#server/backup/staging-folder.ts'
import { ApprovalStore } from '#workflows/store/approval-store.ts'
import { DelegationStore } from '#workflows/store/delegation-store.ts'
import { GrantStore } from '#workflows/store/grant-store.ts'
import { IdempotencyStore } from '#workflows/store/idempotency-store.ts'
import { JobRunStore } from '#workflows/store/job-run-store.ts'
import { RunStore } from '#workflows/store/run-store.ts'
import { InProcessWakeUp, type RunWakeUp, type WakeUp } from '#workflows/store/wake-up.ts'
import { TimerStore } from '#workflows/timers/timer-store.ts'
import { SystemStore } from './system-store.ts'

export interface StorageOptions {
  /** `postgres://…` or `sqlite:<file>`; else the file `gatehouse.db` in `dataFolder`. */
  readonly url?: string | undefined
  readonly dataFolder?: string
  readonly clock: Clock
  readonly log: Logger
  /** Notified of runs that can be claimed. */
  readonly wake?: WakeUp
  /** The keys of the audit: the first seals, all of them verify. Without any, an audit that is sealed cannot be written. */
  readonly auditKeys?: readonly AuditKey[]
  /** `apply` if absent. */
  readonly migrations?: MigrationPolicy
  readonly meter?: TransactionMeter | undefined
}

/** All stores of one database. */
export type Storage = ReturnType<typeof openStorage>

/** Throws an Error without an address, or if a restore of the data folder did not finish. Connects to the database with `ready`, or with its first use. */
export function openStorage({ url, dataFolder, clock, log, wake, auditKeys, migrations, meter }: StorageOptions) {
  const address = url ?? (dataFolder === undefined ? undefined : `sqlite:${join(dataFolder, 'gatehouse.db')}`)
  if (address === undefined) throw new Error('a data folder or a database is needed')
  if (url === undefined && dataFolder !== undefined) refuseLeftover(dataFolder)
  const [firstKey, ...otherKeys] = auditKeys ?? []
  const seal = firstKey === undefined ? undefined : new AuditSeal([firstKey, ...otherKeys])
  const databases = new Databases({ clock, log, seal, migrations, meter })
  const { client, release } = databases.use(address)
  /**
   * Resolves when the database answers and is migrated. Rejects with TARGET_UNREACHABLE when it does not answer, and with
   * SchemaMismatch when this program must not use it, such as a database of a newer version; and when it is damaged.
   */
  const ready = async (): Promise<void> => {
    await selectOne.all(client, {})
    const { damage } = client
    if (damage !== undefined) throw new GatewayError('TARGET_UNREACHABLE', `the database is damaged: ${damage}`)
  }
  const reports = new ReportStore(address, ready, log)
  return {
    sessions: new SessionStore(client),
    logins: new LoginStore(client),
    loginFailures: new LoginFailureStore(client),
    clientTokens: new ClientTokenStore(client),
    tenants: new TenantStore(client),
    rateLimits: client.dialect === 'postgres' ? new RateLimitStore(client) : new MemoryRateLimits(clock),
    audit: new AuditStore(client, seal),
    auditSinks: new AuditSinkStore(client),
    journal: new JournalStore(client),
    events: new EventStore(client),
    runs: new RunStore(client, wake),
    approvals: new ApprovalStore(client, wake),
    timers: new TimerStore(client),
    mails: new MailStore(client),
    grants: new GrantStore(client),
    delegations: new DelegationStore(client),
    jobRuns: new JobRunStore(client),
    idempotency: new IdempotencyStore(client),
    reconciliations: new ReconciliationStore(client, wake),
    accountLinks: new LinkStore(client),
    changeFeeds: new FeedStore(client),
    keys: new KeyStore(client),
    issuer: new IssuerStore(client),
    registrations: new RegistrationStore(client),
    notifications: new NotificationStore(client),
    passwordChanges: new PasswordChangeStore(client),
    portal: new PortalStore(client),
    secondFactors: new SecondFactorStore(client),
    reports,
    statistics: new StatisticsStore(client),
    system: new SystemStore(client),
    /**
     * Does not wait for the database: the methods of the directory report that it can't be reached. Throws an Error for an
     * invalid address. The caller closes it.
     */
    userDirectory(options: UserDirectoryOptions): UserDirectory {
      const used = databases.use(options.url ?? address)
      return new UserDirectoryStore(used.client, options.name, clock, used.release)
    },
    ready,
    /** The connections to PostgreSQL; undefined for SQLite, and before the first one. */
    pool: () => client.pool,
    /** Reads an SQLite file in another thread, and resolves with its first damage. From then on `ready` rejects. */
    findDamage: () => client.findDamage(),
    /** Waits for pending writes. Directories of the same database keep it open until they are closed. */
    async close(): Promise<void> {
      await reports.close()
      await release()
    },
  }
}

/** For the database at that address; the embedded one when there is none. Connects only when it is started. */
export async function openRunWakeUp(url: string | undefined, log: Logger): Promise<RunWakeUp> {
  const { dialect, address } = url === undefined ? { dialect: 'sqlite', address: '' } : readAddress(url)
  if (dialect === 'sqlite') return new InProcessWakeUp()
  const { NotifyWakeUp } = await import('#workflows/store/notify-wake-up.ts')
  return new NotifyWakeUp(address, log)
}

const selectOne = statement<object, unknown>('select 1')
