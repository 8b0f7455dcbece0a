import type { LoadResult } from '#config/load.ts'
import { escalationTimer } from '#engine/approvals/approval-desk.ts'
import { AuditAnchors } from '#engine/audit/audit-anchors.ts'
import { AuditSinks } from '#engine/audit/audit-sinks.ts'
import { GrantLoop } from '#engine/grants/grant-loop.ts'
import { checkAuditKeys, loadAuditKeys } from '#engine/keys/audit-keys.ts'
import { checkSecretKeys } from '#engine/keys/secret-keys.ts'
import { MailWorker } from '#engine/mail/mail-worker.ts'
import { settleAbandoned } from '#engine/passwords/unknown-outcome.ts'
import { createRuntime, type Runtime, type RuntimeServices } from '#engine/runtime.ts'
import type { RenewalTimes } from '#engine/session/session-renewal.ts'
import { KeeperLoop } from '#engine/sts/publish/keeper-loop.ts'
import type { CrashHook } from '#engine/workflow/crash-point.ts'
import { defaultRetries } from '#engine/workflow/retry-policy.ts'
import { registerRunTimers } from '#engine/workflow/run-timers.ts'
import { RunWorker, type WorkerLimits } from '#engine/workflow/run-worker.ts'
import { TimerLoop } from '#engine/workflow/timer-loop.ts'
import { isLoopbackHost, parseHostPort } from '#kernel/address.ts'
import { type Clock, systemClock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import { buildScoped, type Closable, type Scope } from '#kernel/scope.ts'
import type { Configuration } from '#sdk/module/configuration.ts'
import type { ConfigurationSource } from '#server/configuration-source.ts'
import type { ConnectionLimits } from '#server/http-limits.ts'
import { openListeners } from '#server/listeners.ts'
import type { AccessLog } from '#server/log.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { openDataFolder, ownPlaces, protectGivenKey } from '#server/private-files.ts'
import { applyConfiguration, RunningConfiguration, usable } from '#server/reload.ts'
import { createServices } from '#server/services.ts'
import { createKeyKeeper, keyIssuers } from '#server/token-keys.ts'
import { readAddress } from '#storage/client/databases.ts'
import { lockInstance } from '#storage/instance-lock.ts'
import { openRunWakeUp, openStorage, type Storage } from '#storage/open.ts'
import type { RunWakeUp } from '#storage/runs/wake-up.ts'
import type { TimerStore } from '#storage/timer-store.ts'

export interface GatewayOptions {
  /** Closed with the gateway, or if it does not start. */
  readonly source: ConfigurationSource
  readonly dataFolder: string
  readonly databaseUrl: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly listen: string
  /** Undefined for no metrics listener. */
  readonly metrics: string | undefined
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly trustedProxies: readonly string[]
  readonly connectionLimits?: ConnectionLimits
  readonly workflowLimits: WorkflowLimits
  readonly renewalTimes?: RenewalTimes
  readonly log: Logger
  readonly accessLog: AccessLog
  readonly faults?: Faults
}

/** Injected by tests of crashes. */
export interface Faults {
  readonly crash?: CrashHook
  /** The lease of everything that the process claims, so that tests need not wait long for it to expire. */
  readonly leaseMillis?: number
}

/** Limits of the stored runs that this process executes. */
export interface WorkflowLimits {
  /** Attempts of one step, the first included. */
  readonly attempts: number
  readonly leaseMillis: number
  /** Time limit of a step. */
  readonly stepMillis: number
  /** Runs at the same time. */
  readonly atOnce: number
}

export interface Gateway {
  /** The public address, with the actual port. */
  readonly address: string
  readonly metricsAddress: string | undefined
  /** The address of the injector webhook at the start; undefined without a listener. */
  readonly webhookAddress: string | undefined
  /** Reloads the configuration and the certificates of listeners, even if they have not changed. */
  reload(): Promise<void>
  /** Accepts no new requests, finishes open ones, closes everything. */
  close(): Promise<void>
}

const deleteExpiredEveryMillis = 60_000
/** The lease of a mail is not renewed, so it is longer than that of a step. */
const mailLeases = 4

/** Starts everything, or throws with nothing left open: ConfigurationRefused for an invalid configuration. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { value, scope } = await buildScoped((scope) => start(options, scope))
  return { ...value, close: () => scope.close() }
}

async function start(options: GatewayOptions, scope: Scope): Promise<Omit<Gateway, 'close'>> {
  const { log, dataFolder, environment } = options
  const clock = systemClock
  const source = scope.own(options.source)
  const first = await source.load()
  if (first.configuration === undefined) await source.settled(first, 'refused')
  const configuration = usable(first, log)
  const { storage, dispatcher } = await openDatabase(options, scope)
  const metrics = createMetrics()
  const outside = { ...ownPlaces(dataFolder, options.databaseUrl), clock, log, meter: metrics.audit }
  const anchors = scope.own(new AuditAnchors({ ...outside, audit: storage.audit }))
  const sinks = scope.own(new AuditSinks({ ...outside, store: storage.auditSinks }))
  const configureAudit = async ({ auditSinks, auditAnchors }: Configuration): Promise<void> => {
    await Promise.all([sinks.configure(auditSinks), anchors.configure(auditAnchors)])
  }
  const { attempts, ...workerLimits } = options.workflowLimits
  const { crash, leaseMillis } = options.faults ?? {}
  const lease = leaseMillis === undefined ? {} : { leaseMillis }
  const limits = { ...workerLimits, retries: { ...defaultRetries, attempts }, ...lease }
  const services = createServices({
    storage,
    configFolder: source.folder,
    dataFolder,
    secrets: source.secrets,
    clock,
    log,
    eventMeter: metrics.events,
    workflowMetrics: metrics.workflows,
    countExchange: metrics.exchanged,
    apiServers: metrics.apiServers,
    measureCustody: metrics.custody,
    loginMeter: metrics.logins,
    peopleMetrics: metrics.people,
    leaseMillis: limits.leaseMillis,
    ...(crash === undefined ? {} : { crash }),
    ...(options.renewalTimes === undefined ? {} : { renewalTimes: options.renewalTimes }),
    loopbackOnly: isLoopbackHost(parseHostPort(options.listen).host),
    environment,
  })
  scope.own(services.journals)
  scope.own(services.events)
  const { tokenKeys } = services
  tokenKeys.configure(keyIssuers(configuration))
  const running = scope.own(new RunningConfiguration(await createRuntime(configuration, services), log))
  const mails = {
    store: storage.mails,
    clock,
    log,
    meter: metrics.mails,
    use: <T>(work: (notifiers: Runtime['notifiers']) => Promise<T>) => running.use(({ notifiers }) => work(notifiers)),
  }
  scope.own(new MailWorker(mails, leaseMillis === undefined ? {} : { leaseMillis: leaseMillis * mailLeases }))
  const durable = scope.own(new DurableWork({ services, running, timers: storage.timers, dispatcher, limits, lease }))
  await durable.start()
  metrics.workflows.watch(storage, log)
  metrics.audit.watch(storage.audit, log)
  metrics.configurationOk.set(1)
  const keeper = createKeyKeeper({
    rings: tokenKeys,
    store: storage.keys,
    dataFolder,
    clock,
    log,
    meter: metrics.keys,
    useTarget: (name, work) => running.use((runtime) => work(runtime.target(name))),
  })
  const keeping = scope.own(new KeeperLoop({ keeper, rings: tokenKeys, log }))
  const listeners = await openListeners(
    { ...options, metricsListen: options.metrics, clock, metrics, running, storage },
    scope,
  )
  await configureAudit(configuration)
  // Reading back the documents may call this gateway, so the listeners open first.
  keeping.start()

  const apply = async (loaded: LoadResult): Promise<void> => {
    const outcome = await applyConfiguration(loaded, { running, services, metrics, log })
    void source.settled(loaded, outcome)
    if (outcome === 'applied') void configureAudit(running.current.configuration)
    tokenKeys.configure(keyIssuers(running.current.configuration))
    keeping.wake()
    listeners.wakeWebhook()
  }
  void source.settled(first, 'applied')
  const unread = (err: unknown): void => log.error('configuration could not be read', { err })
  const reload = async (): Promise<void> => {
    await Promise.all([listeners.reloadCertificate(), source.load().then(apply).catch(unread)])
    listeners.wakeWebhook()
  }
  scope.own(source.watch({ hash: first.hash, onChange: apply, onError: unread }))
  deleteExpiredRows(storage, clock, log, scope)
  scope.defer(() => {
    listeners.startShutdown()
    services.events.drain()
  })
  const { address, metricsAddress, webhookAddress } = listeners
  return { address, metricsAddress, webhookAddress, reload }
}

/** Checks the keys, makes the data folder private, and opens and authenticates the database. */
async function openDatabase(options: GatewayOptions, scope: Scope) {
  const { log, dataFolder, databaseUrl, tls } = options
  checkSecretKeys(options.environment)
  checkAuditKeys(options.environment)
  openDataFolder(dataFolder, { log, create: true, databaseUrl })
  if (tls !== undefined) protectGivenKey(tls.keyFile, { log })
  const dispatcher = await openRunWakeUp(databaseUrl, log)
  const database = { dataFolder, ...(databaseUrl === undefined ? {} : { url: databaseUrl }) }
  scope.own(await lockInstance(database))
  const auditKeys = await loadAuditKeys(options, 'gateway')
  const storage = scope.own(openStorage({ ...database, clock: systemClock, log, wake: dispatcher, auditKeys }))
  await storage.ready()
  await authenticateAudit(storage, log)
  // Before the first request: end the sessions of users whose password a killed process was writing.
  const isAlone = databaseUrl === undefined || readAddress(databaseUrl).dialect === 'sqlite'
  await settleAbandoned(storage.passwordChanges, isAlone ? 'all' : 'expired')
  return { storage, dispatcher }
}

/** Runs before anything is written. A gateway with a forged audit continues to write to it, and logs an error. */
async function authenticateAudit({ audit }: Storage, log: Logger): Promise<void> {
  const { sealed, records, forged } = await audit.authenticate()
  if (sealed) log.info('the audit is authenticated from now on; existing records are sealed as they are', { records })
  if (forged.length > 0) {
    log.error('the audit was changed without its key; run "gatehouse audit verify"', { chains: forged })
  }
}

function deleteExpiredRows(storage: Storage, clock: Clock, log: Logger, scope: Scope): void {
  const timer = setInterval(() => {
    const now = clock()
    Promise.all([
      storage.sessions.deleteExpired(now),
      storage.logins.deleteExpired(now),
      storage.loginFailures.deleteForgotten(now),
      storage.issuer.deleteExpired(now),
    ]).catch((err: unknown) => log.warn('expired sessions and logins were not removed', { err }))
    settleAbandoned(storage.passwordChanges)
      .then(() => storage.passwordChanges.deleteExpired())
      .catch((err: unknown) => log.warn('expired password reset links were not removed', { err }))
    storage.registrations
      .deleteExpired()
      .catch((err: unknown) => log.warn('expired registrations were not removed', { err }))
  }, deleteExpiredEveryMillis)
  timer.unref()
  scope.defer(() => clearInterval(timer))
}

interface DurableParts {
  readonly services: RuntimeServices
  readonly running: RunningConfiguration
  readonly timers: TimerStore
  readonly dispatcher: Pick<RunWakeUp, 'start' | 'close'>
  readonly limits: Partial<WorkerLimits>
  /** The lease of timers, if it differs from the default. */
  readonly lease?: { readonly leaseMillis?: number }
}

const dispatcherAgainMillis = 30_000

/** The background work of this process: stored runs, timers, expiring access. */
class DurableWork implements Closable {
  readonly #parts: DurableParts
  readonly #worker: RunWorker
  readonly #timers: TimerLoop
  readonly #grants: GrantLoop
  #again: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: DurableParts) {
    const { services, running, timers, limits, lease = {} } = parts
    const { log } = services
    this.#parts = parts
    this.#worker = new RunWorker(services, (work) => running.use(({ workflows }) => work(workflows.workflows)), limits)
    this.#timers = new TimerLoop({ store: timers, log, ...lease })
    registerRunTimers(this.#timers, services.runs)
    this.#timers.on(escalationTimer, (timer) => running.use(({ workflows }) => workflows.approvals.escalate(timer)))
    const revokeDue = (signal: AbortSignal) => running.use(({ workflows }) => workflows.revokeDue(signal))
    this.#grants = new GrantLoop({ revokeDue, log })
  }

  async start(): Promise<void> {
    const { services } = this.#parts
    const freed = await services.runs.recover()
    if (freed > 0) services.log.info('runs are taken up that the last process left', { runs: freed })
    void this.#dispatch()
    this.#worker.start()
    this.#timers.start()
    this.#grants.start()
  }

  /** Aborts running steps. Another process, or the next start, continues the rest. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#again)
    await Promise.all([this.#worker.close(), this.#timers.close(), this.#grants.close()])
    await this.#parts.dispatcher.close()
  }

  /** The workers look by themselves as well, so nothing waits for it. */
  async #dispatch(): Promise<void> {
    const { dispatcher, services } = this.#parts
    try {
      await dispatcher.start(() => this.#worker.wake())
    } catch (err) {
      services.log.warn('other processes cannot be notified; they poll for runs', { err })
      if (!this.#closed) this.#again = setTimeout(() => void this.#dispatch(), dispatcherAgainMillis)
    }
  }
}
