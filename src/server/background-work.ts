import { settleAbandoned } from '#features/passwords/service/password-audit.ts'
import { ChangeFeed } from '#features/reconciliation/service/change-feed.ts'
import { PlanLoop } from '#features/reconciliation/service/plan-loop.ts'
import { ReconciliationPlans } from '#features/reconciliation/service/plans.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import { type MailMeter, MailWorker } from '#mail/mail-worker.ts'
import type { RuntimeServices } from '#server/composition/runtime.ts'
import type { Storage } from '#server/composition/stores.ts'
import type { RunningConfiguration } from '#server/reload.ts'
import { escalationTimer } from '#workflows/approvals/open-approval.ts'
import { GrantLoop } from '#workflows/grants/grant-revoker.ts'
import { RunWorker, type WorkerLimits } from '#workflows/runs/run-worker.ts'
import { registerRunTimers } from '#workflows/steps/run-timers.ts'
import type { RunWakeUp } from '#workflows/store/wake-up.ts'
import { TimerLoop } from '#workflows/timers/timer-loop.ts'

export interface BackgroundParts {
  readonly storage: Storage
  readonly services: RuntimeServices
  readonly running: RunningConfiguration
  readonly wakeUp: Pick<RunWakeUp, 'start' | 'close'>
  readonly limits: Partial<WorkerLimits>
  readonly mailMeter: MailMeter
  /** The name of this process. */
  readonly replica: string
  /** The leases of timers, plans and mails, if they differ from the defaults. */
  readonly leases: { readonly timers: { leaseMillis?: number }; readonly mails: { leaseMillis?: number } }
}

const wakeUpAgainMillis = 30_000

/**
 * The background work of the process: stored runs, timers, expiring access, mails, plans of reconciliations, rows that
 * expired, and damage of the database. Each piece of work uses the configuration of its time.
 */
export class BackgroundWork implements Closable {
  readonly #parts: BackgroundParts
  readonly #worker: RunWorker
  readonly #timers: TimerLoop
  readonly #grants: GrantLoop
  readonly #mails: MailWorker
  readonly #plans: PlanLoop
  readonly #changes: ChangeFeed
  readonly #expiry: NodeJS.Timeout
  readonly #reading: NodeJS.Timeout
  #again: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: BackgroundParts) {
    const { storage, services, running, limits, leases, mailMeter, replica } = parts
    const { clock, log } = services
    this.#parts = parts
    this.#worker = new RunWorker(services, (work) => running.use(({ workflows }) => work(workflows.workflows)), limits)
    this.#timers = new TimerLoop({ store: storage.timers, log, ...leases.timers })
    registerRunTimers(this.#timers, services.runs)
    this.#timers.on(escalationTimer, (timer) => running.use(({ workflows }) => workflows.approvals.escalate(timer)))
    const revokeDue = (signal: AbortSignal) => running.use(({ workflows }) => workflows.revokeDue(signal))
    this.#grants = new GrantLoop({ revokeDue, log })
    const mails = { store: storage.mails, clock, log, meter: mailMeter }
    this.#mails = new MailWorker(
      { ...mails, use: (work) => running.use(({ notifiers }) => work(notifiers)) },
      leases.mails,
    )
    this.#plans = new PlanLoop(
      {
        store: storage.reconciliations,
        clock,
        log,
        worker: replica,
        use: (work) => running.use((runtime) => work(runtime.reconciliations, () => running.current === runtime)),
      },
      leases.timers,
    )
    this.#changes = new ChangeFeed({
      feeds: storage.changeFeeds,
      plans: new ReconciliationPlans({ store: storage.reconciliations, links: storage.accountLinks, clock }),
      log,
      followed: () => running.current.reconciliations.followed,
    })
    this.#expiry = setInterval(() => deleteExpiredRows(storage, clock, log), deleteExpiredEveryMillis)
    this.#expiry.unref()
    this.#reading = setInterval(() => void findDamage(storage, log), findDamageEveryMillis)
    this.#reading.unref()
  }

  async start(): Promise<void> {
    const { services, storage } = this.#parts
    void findDamage(storage, services.log)
    const freed = await services.runs.recover()
    if (freed > 0) services.log.info('took over the runs that the last process left', { runs: freed })
    void this.#listen()
    this.#worker.start()
    this.#timers.start()
    this.#grants.start()
    await this.#plans.start()
    this.#changes.start()
  }

  /** Aborts running steps. Another process, or the next start, continues the rest. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#again)
    clearInterval(this.#expiry)
    clearInterval(this.#reading)
    const parts = [this.#worker, this.#timers, this.#grants, this.#mails, this.#plans, this.#changes]
    const closed = await Promise.allSettled(parts.map((part) => part.close()))
    await this.#parts.wakeUp.close()
    const failed = closed.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }

  /** The workers also poll, so nothing waits for the wake-up. */
  async #listen(): Promise<void> {
    const { wakeUp, services } = this.#parts
    try {
      await wakeUp.start(() => this.#worker.wake())
    } catch (err) {
      services.log.warn('other processes cannot be notified; they poll for runs', { err })
      if (!this.#closed) this.#again = setTimeout(() => void this.#listen(), wakeUpAgainMillis)
    }
  }
}

const findDamageEveryMillis = 6 * 60 * 60 * 1000

/** Where a damaged page is read only now and then, no request would show it soon. */
async function findDamage(storage: Storage, log: Logger): Promise<void> {
  try {
    const damage = await storage.findDamage()
    if (damage !== undefined) {
      log.error('the database is damaged: stop the gateway, keep the file, and restore a backup', { damage })
    }
  } catch (err) {
    log.warn('the database could not be searched for damage', { err })
  }
}

const deleteExpiredEveryMillis = 60_000

function deleteExpiredRows(storage: Storage, clock: Clock, log: Logger): void {
  const now = clock()
  Promise.all([
    storage.sessions.deleteExpired(now),
    storage.logins.deleteExpired(now),
    storage.loginFailures.deleteForgotten(now),
    storage.clientTokens.prune(),
    storage.rateLimits.prune(),
    storage.issuer.deleteExpired(now),
  ]).catch((err: unknown) => log.warn('expired sessions, logins, tokens and rates were not removed', { err }))
  settleAbandoned(storage.passwordChanges)
    .then(() => storage.passwordChanges.deleteExpired())
    .catch((err: unknown) => log.warn('expired password reset links were not removed', { err }))
  storage.registrations
    .deleteExpired()
    .catch((err: unknown) => log.warn('expired registrations were not removed', { err }))
}
