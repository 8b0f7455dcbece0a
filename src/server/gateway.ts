import { AuditAnchors } from '#audit/audit-anchors.ts'
import { AuditSinks } from '#audit/audit-sinks.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import type { LoadResult } from '#config/load/load.ts'
import type { ConfigurationSource } from '#config/watch/configuration-source.ts'
import { KeeperLoop } from '#features/sts/publish/key-keeper.ts'
import { TokenReport } from '#features/sts/service/token-report.ts'
import { isLoopbackHost, parseHostPort } from '#kernel/address.ts'
import { systemClock } from '#kernel/clock.ts'
import { processName } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import type { ConnectionLimits } from '#requests/listener/http-limits.ts'
import type { RenewalTimes } from '#requests/pipeline/session-renewal.ts'
import { BackgroundWork } from '#server/background-work.ts'
import { ownPlaces, protectGivenKey } from '#server/composition/private-files.ts'
import { createRuntime } from '#server/composition/runtime.ts'
import { createServices } from '#server/composition/services.ts'
import { createKeyKeeper, keyIssuers } from '#server/composition/token-keys.ts'
import { ConfigurationReport } from '#server/configuration-report.ts'
import { CreationRetries } from '#server/creation-retries.ts'
import { openListeners, type Sharing } from '#server/listeners.ts'
import type { AccessLog } from '#server/log/log.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { metricsAccess } from '#server/metrics/metrics-access.ts'
import { openDatabase } from '#server/open-database.ts'
import type { Operations } from '#server/operations.ts'
import { applyConfiguration, RunningConfiguration, startConfiguration, usable } from '#server/reload.ts'
import { SystemReport } from '#server/system-report.ts'
import { readTracingOptions } from '#server/tracing/tracing-options.ts'
import { defaultRetries } from '#workflows/runs/retry-policy.ts'
import type { CrashHook } from '#workflows/steps/workflow-services.ts'

interface GatewayOptions {
  /** Closed with the gateway, or if it does not start. */
  readonly source: ConfigurationSource
  readonly dataFolder: string
  readonly databaseUrl: string | undefined
  /** Refuse a configuration with any error, instead of setting objects aside. */
  readonly strict?: boolean
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly listen: string
  /** Undefined for no metrics listener. */
  readonly metrics: string | undefined
  readonly sharing?: Sharing | undefined
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
  /** Attempts of one step, including the first. */
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
  readonly operations: Operations
  /** Reloads the configuration and the certificates of listeners, even if they have not changed. */
  reload(): Promise<void>
  /** Accepts no new requests, finishes open ones, closes everything. */
  close(): Promise<void>
}

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
  const { strict = false } = options
  const first = await source.load()
  try {
    usable(first, { strict, served: [] })
  } catch (error) {
    await source.settled(first, 'refused')
    throw error
  }
  if (options.tls !== undefined) protectGivenKey(options.tls.keyFile, { log })
  const metrics = createMetrics()
  const replica = processName()
  const tracing = readTracingOptions(environment)
  if (tracing !== undefined) {
    // Loaded only where it is used. Filters and targets are created with the tracer, so it comes before them.
    const { openTracing } = await import('#server/tracing/open-tracing.ts')
    scope.own(await openTracing(tracing, { replica, meter: metrics.spans, log }))
  }
  const { storage, wakeUp } = await openDatabase(options, scope)
  const outside = { ...ownPlaces(dataFolder, options.databaseUrl), clock, log, meter: metrics.audit }
  const anchors = scope.own(new AuditAnchors({ ...outside, audit: storage.audit }))
  const sinks = scope.own(new AuditSinks({ ...outside, store: storage.auditSinks }))
  const configureAudit = async ({ auditSinks, auditAnchors, setAside = [] }: Configuration): Promise<void> => {
    const waiting = setAside.flatMap(({ kind, name }) => (kind === 'AuditSink' ? [name] : []))
    await Promise.all([sinks.configure(auditSinks, waiting), anchors.configure(auditAnchors)])
  }
  const { attempts, ...workerLimits } = options.workflowLimits
  const { crash, leaseMillis } = options.faults ?? {}
  const lease = leaseMillis === undefined ? {} : { leaseMillis }
  const limits = { ...workerLimits, retries: { ...defaultRetries, attempts }, ...lease }
  const loads = new ConfigurationReport(first, clock)
  const system = scope.own(await SystemReport.start({ replica, storage, dataFolder, clock, log }))
  const tokenReport = new TokenReport({
    store: storage.keys,
    log,
    configuration: () => running.current.configuration,
  })
  const retries = scope.own(new CreationRetries(log))
  const shared = createServices({
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
    targetMeter: metrics.targets,
    peopleMetrics: metrics.people,
    leaseMillis: limits.leaseMillis,
    crash,
    renewalTimes: options.renewalTimes,
    loopbackOnly: isLoopbackHost(parseHostPort(options.listen).host),
    environment,
    replica,
    installation: {
      readSystem: () => system.describe(),
      loaded: loads,
      tokenReport,
      metrics: metricsAccess(options.sharing?.metricsOfAll ?? (() => metrics.registry)),
    },
  })
  const services = { ...shared, secondsToRetry: () => retries.seconds }
  scope.own(services.journals)
  scope.own(services.auditReader)
  scope.own(services.events)
  scope.own(services.runChanges)
  scope.own(services.sessionChanges)
  const { tokenKeys } = services
  const create = (one: Configuration) => {
    tokenKeys.configure(keyIssuers(one))
    return createRuntime(one, services)
  }
  const { runtime, served: started } = await startConfiguration(first, create, { strict, served: [], log })
  const { configuration } = runtime
  loads.settled(started, 'applied')
  const running = scope.own(new RunningConfiguration(runtime, log))
  loads.explainWith((work) => running.use(work))
  const leases = {
    timers: lease,
    mails: leaseMillis === undefined ? {} : { leaseMillis: leaseMillis * mailLeases },
  }
  const background = scope.own(
    new BackgroundWork({ storage, services, running, wakeUp, limits, leases, mailMeter: metrics.mails }),
  )
  await background.start()
  metrics.workflows.watch(storage, log)
  metrics.audit.watch(storage.audit, log)
  metrics.configurationOk.set(1)
  metrics.objects(started.found)
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
    {
      ...options,
      metricsListen: options.metrics,
      sharing: options.sharing,
      clock,
      metrics,
      running,
      objects: () => loads.served,
      storage,
    },
    scope,
  )
  system.showListeners(listeners.describe)
  await configureAudit(configuration)
  // Reading back the documents may call this gateway, so the listeners open first.
  keeping.start()

  let latest = first
  let applied = { loaded: first, notCreated: started.notCreated ?? [] }
  /** `again`: for another attempt with the same configuration, what could not be created. */
  const apply = async (loaded: LoadResult, again?: readonly string[]): Promise<void> => {
    if (again === undefined) latest = loaded
    const parts = { running, services, metrics, strict, served: loads.served, log, again }
    const { outcome, served, notCreated } = await applyConfiguration(loaded, parts)
    if (outcome === 'applied') applied = { loaded, notCreated }
    // After a change that is refused for its errors, what the running configuration lacks is still tried.
    const isRefused = again === undefined && outcome !== 'applied' && notCreated.length === 0
    if (!isRefused) retryLater(loaded, notCreated, again !== undefined)
    else if (tried !== applied.loaded) retryLater(applied.loaded, applied.notCreated, false)
    if (outcome === 'unchanged') return
    loads.settled(served, outcome)
    void source.settled(served, outcome)
    if (outcome === 'applied') void configureAudit(running.current.configuration)
    tokenKeys.configure(keyIssuers(running.current.configuration))
    keeping.wake()
    listeners.wakeWebhook()
    if (outcome === 'applied') options.sharing?.onServed(running.current.configuration.hash)
    // The attempt was for the running configuration, and the latest change is still refused.
    if (loaded !== latest) await apply(latest)
  }
  void source.settled(started, 'applied')
  options.sharing?.onServed(configuration.hash)
  const unread = (err: unknown): void => {
    loads.unread()
    log.error('configuration could not be read', { err })
  }
  // One at a time, in the order in which they were read: otherwise an older configuration could replace a newer one.
  let applying = Promise.resolve()
  let isRereadDue = false
  const inOrder = (work: () => Promise<void>): Promise<void> => {
    applying = applying.then(work).catch(unread)
    return applying
  }
  scope.defer(() => applying)
  let tried = first
  const retryLater = (loaded: LoadResult, problems: readonly string[], isRepeated: boolean): void => {
    tried = loaded
    retries.plan(problems, isRepeated, () => {
      void inOrder(async () => {
        if (tried === loaded) await apply(loaded, problems)
      })
    })
  }
  retryLater(first, applied.notCreated, false)
  const reload = async (): Promise<void> => {
    const reapplied = inOrder(async () => {
      isRereadDue = true
      await apply(await source.load())
    })
    await Promise.all([listeners.reloadCertificate(), reapplied])
    listeners.wakeWebhook()
  }
  const onChange = (result: LoadResult): Promise<void> =>
    inOrder(async () => {
      // The watcher may have read this before a reload that is applied by now.
      const latest = isRereadDue ? await source.load().catch(() => result) : result
      isRereadDue = false
      await apply(latest)
    })
  scope.own(source.watch({ hash: first.hash, onChange, onError: unread }))
  scope.defer(() => {
    listeners.startShutdown()
    services.events.drain()
    services.runChanges.drain()
    services.sessionChanges.drain()
  })
  const { address, metricsAddress, webhookAddress, operations } = listeners
  return { address, metricsAddress, webhookAddress, operations, reload }
}
