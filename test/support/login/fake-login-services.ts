import { createSecretKey, randomBytes } from 'node:crypto'
import type { SqlClient } from '#database/sql-client.ts'
import type { Identity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { SecretBox } from '#keys/secret-box.ts'
import { LoginAudit } from '#requests/login/login-audit.ts'
import type { LoginServices } from '#requests/login/login-desk.ts'
import { LoginFailureStore } from '#requests/login/login-failure-store.ts'
import { LoginStore } from '#requests/login/login-store.ts'
import { endAfterPassword, PasswordChangeStore } from '#requests/login/password-change-store.ts'
import type { PipelineParts } from '#requests/pipeline/pipeline.ts'
import { SessionStore } from '#requests/sessions/session-store.ts'
import { Sessions } from '#requests/sessions/sessions.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'

export interface FakeLoginServices extends LoginServices {
  readonly database: SqlClient
  /** The rows in the audit. */
  readonly audited: AuditEntry[]
  /** Records that the password was changed now. */
  changePassword(owner: Identity): Promise<void>
  /** `chain outcome` of each counted login. */
  readonly counted: string[]
  /** Sessions stay as they were at the login. */
  readonly renewal: PipelineParts['renewal']
}

export function fakeSecretBox(what = 'session'): SecretBox {
  const key = { id: 'k1', key: createSecretKey(randomBytes(32)) }
  return new SecretBox(async () => [key], { what, damaged: 'INTERNAL' })
}

/** The services that logins need, on a database in memory. */
export function fakeLoginServices(clock: Clock, store?: SessionStore): FakeLoginServices {
  const database = memoryDatabase(clock)
  const audited: AuditEntry[] = []
  const counted: string[] = []
  const rateLimits = new MemoryRateLimits(clock)
  return {
    database,
    audited,
    counted,
    renewal: { current: (session) => session },
    logins: new LoginStore(database),
    loginFailures: new LoginFailureStore(database),
    rateLimits,
    passwordChanges: new PasswordChangeStore(database),
    changePassword: async (owner) => {
      const ending = { owners: [owner], logins: [], audit: () => [] }
      await database.transaction((tx) => endAfterPassword(tx, ending))
    },
    loginSecrets: fakeSecretBox('login'),
    loginAudit: new LoginAudit({
      audit: { append: async (rows) => void audited.push(...rows) },
      rateLimits,
      clock,
      log: silentLogger,
    }),
    loginMeter: { counted: (chain, outcome) => void counted.push(`${chain} ${outcome}`) },
    sessions: new Sessions(store ?? new SessionStore(database), clock, fakeSecretBox()),
    clock,
    log: silentLogger,
  }
}
