import { createSecretKey, randomBytes } from 'node:crypto'
import type { AuditEntry } from '#domain/audit.ts'
import { LoginAudit } from '#engine/login/login-audit.ts'
import type { LoginServices } from '#engine/login/login-desk.ts'
import type { PipelineParts } from '#engine/pipeline/pipeline.ts'
import { Sessions } from '#engine/session/sessions.ts'
import { SecretBox } from '#engine/workflow/sealed-secret.ts'
import type { Identity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { LoginFailureStore } from '#storage/login-failure-store.ts'
import { LoginStore } from '#storage/login-store.ts'
import type { PasswordChangeStore } from '#storage/password-change-store.ts'
import { SessionStore } from '#storage/session-store.ts'
import { absentStore } from '#testing/call-store.ts'
import { memoryDatabase } from '#testing/memory-database.ts'

export interface FakeLoginServices extends LoginServices {
  readonly database: SqlClient
  /** The rows that were written to the audit. */
  readonly audited: AuditEntry[]
  /** When passwords were changed. */
  readonly changed: Map<Identity, Date>
  /** `chain outcome` of each login that was counted. */
  readonly counted: string[]
  /** Sessions stay as they were at the login. */
  readonly renewal: PipelineParts['renewal']
}

export function fakeSecretBox(what = 'session'): SecretBox {
  const key = { id: 'k1', key: createSecretKey(randomBytes(32)) }
  return new SecretBox(async () => [key], { what, damaged: 'INTERNAL' })
}

/** What logins need, on a database in memory. */
export function fakeLoginServices(clock: Clock, store?: SessionStore): FakeLoginServices {
  const database = memoryDatabase()
  const audited: AuditEntry[] = []
  const counted: string[] = []
  const changed = new Map<Identity, Date>()
  return {
    database,
    audited,
    counted,
    renewal: { current: (session) => session },
    logins: new LoginStore(database),
    loginFailures: new LoginFailureStore(database),
    passwordChanges: Object.assign(Object.create(absentStore<PasswordChangeStore>('password changes')), {
      changedAt: async (owners: readonly Identity[]) => owners.map((owner) => changed.get(owner)).find(Boolean),
    }),
    changed,
    loginSecrets: fakeSecretBox('login'),
    loginAudit: new LoginAudit({
      audit: { append: async (rows) => void audited.push(...rows) },
      clock,
      log: silentLogger,
    }),
    loginMeter: { counted: (chain, outcome) => void counted.push(`${chain} ${outcome}`) },
    sessions: new Sessions(store ?? new SessionStore(database), clock, fakeSecretBox()),
    clock,
    log: silentLogger,
  }
}
