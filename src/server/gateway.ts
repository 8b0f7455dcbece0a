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
import { ReservedPort } from '#requests/listener/reserved-port.ts'
import type { RenewalTimes } from '#requests/pipeline/session-renewal.ts'
import { BackgroundWork } from '#server/background-work.ts'
import { ownPlaces, protectGivenKey } from '#server/composition/private-files.ts'
import { createRuntime, type Runtime } from '#server/composition/runtime.ts'
import { createServices } from '#server/composition/services.ts'
import type { Storage } from '#server/composition/stores.ts'
import { createKeyKeeper, keyIssuers } from '#server/composition/token-keys.ts'
import { ConfigurationChanges } from '#server/configuration-changes.ts'
import { ConfigurationReport } from '#server/configuration-report.ts'
import { CreationRetries } from '#server/creation-retries.ts'
import type { AuditHealth } from '#server/health.ts'
import { openListeners, type Sharing } from '#server/listeners.ts'
import type { AccessLog } from '#server/log/log.ts'
import { createMetrics, type Metrics } from '#server/metrics/metrics.ts'
import { metricsAccess } from '#server/metrics/metrics-access.ts'
import { openDatabase } from '#server/open-database.ts'
import type { Operations } from '#server/operations.ts'
import { applyConfiguration, RunningConfiguration, startConfiguration, usable } from '#server/reload.ts'
import { SystemReport } from '#server/system-report.ts'
import { TenantFollower } from '#server/tenant-follower.ts'
import type { openTracing } from '#server/tracing/open-tracing.ts'
import { readTracingOptions } from '#server/tracing/tracing-options.ts'
import { defaultRetries } from '#workflows/runs/retry-policy.ts'
import type { CrashHook } from '#workflows/steps/workflow-services.ts'
import type { RunWakeUp } from '#workflows/store/wake-up.ts'

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
  /** From now on `/ready` returns 503. Everything is served as before. */
  startShutdown(): void
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

/** What the steps of the start need of those before them. */
interface ProcessParts {
  readonly options: GatewayOptions
  readonly scope: Scope
  readonly metrics: Metrics
  readonly replica: string
  readonly storage: Storage
}

const clock = systemClock

async function start(options: GatewayOptions, scope: Scope): Promise<Omit<Gateway, 'close'>> {
  const { log, dataFolder, sharing } = options
  const source = scope.own(options.source)
  const written = await loadFirst(source, options)
  if (options.tls !== undefined) protectGivenKey(options.tls.keyFile, { log })
  const metrics = createMetrics()
  const replica = processName()
  await startTracing(options, { replica, meter: metrics.spans, log }, scope)
  const addresses = await reserveAddresses(options, scope)
  const { storage, wakeUp } = await openDatabase({ ...options, meter: metrics.database.transaction }, scope)
  const parts: ProcessParts = { options, scope, metrics, replica, storage }
  const tenants = scope.own(new TenantFollower({ store: storage.tenants, stored: source.stored, log }))
  const first = (await tenants.read()) ? await loadFirst(source, options) : written
  const audit = openAuditCopies(parts)
  const loads = new ConfigurationReport(first, clock)
  const system = scope.own(await SystemReport.start({ replica, storage, dataFolder, clock, log }))
  const configuration = (): Configuration => running.current.configuration
  const tokenReport = new TokenReport({ store: storage.keys, log, configuration })
  const retries = scope.own(new CreationRetries(log))
  const services = openServices(parts, retries, { readSystem: () => system.describe(), loaded: loads, tokenReport })
  const { running, started } = await startRunning(parts, first, services)
  loads.settled(started, 'applied')
  loads.explainWith((work) => running.use(work))
  await startBackgroundWork(parts, { services, running, wakeUp })
  watchMetrics(parts, started, running)
  const keeping = openKeyKeeping(parts, services.tokenKeys, running)
  const objects = () => loads.served
  const listeners = await openListeners(
    { ...options, ...addresses, sharing, clock, metrics, running, audit: audit.health, objects, storage },
    scope,
  )
  system.showListeners(listeners.describe)
  await audit.configure(configuration())
  // Reading back the documents may call this gateway, so the listeners open first.
  keeping.start()
  void source.settled(started, 'applied')
  sharing?.onServed(configuration().hash)
  const wakeFollowers = (): void => {
    keeping.wake()
    listeners.wakeWebhook()
  }
  const changes = openChanges(parts, {
    first,
    started,
    retries,
    running,
    services,
    loads,
    configureAudit: audit.configure,
    wakeFollowers,
  })
  scope.own(changes.watch())
  tenants.follow(() => changes.reload())
  scope.defer(() => {
    listeners.startShutdown()
    services.events.drain()
    services.runChanges.drain()
    services.sessionChanges.drain()
  })
  const reload = async (): Promise<void> => {
    await Promise.all([changes.reload(), listeners.reloadCertificate()])
    listeners.wakeWebhook()
  }
  const { address, metricsAddress, webhookAddress, operations, startShutdown } = listeners
  return { address, metricsAddress, webhookAddress, operations, reload, startShutdown }
}

/** Throws ConfigurationRefused if it can't be served, before anything else is opened. */
async function loadFirst(source: ConfigurationSource, { strict = false }: GatewayOptions): Promise<LoadResult> {
  const first = await source.load()
  try {
    usable(first, { strict, served: [] })
  } catch (error) {
    await source.settled(first, 'refused')
    throw error
  }
  return first
}

/** Loaded only where it is used. Filters and targets are created with the tracer, so it comes before them. */
async function startTracing(
  { environment }: GatewayOptions,
  parts: Parameters<typeof openTracing>[1],
  scope: Scope,
): Promise<void> {
  const tracing = readTracingOptions(environment)
  if (tracing === undefined) return
  const loaded = await import('#server/tracing/open-tracing.ts')
  scope.own(await loaded.openTracing(tracing, parts))
}

/** Workers share the addresses of running ones, whose connections they must not take before they can serve them. */
async function reserveAddresses({ listen, metrics, sharing }: GatewayOptions, scope: Scope) {
  const at = async (address: string) =>
    sharing === undefined ? scope.own(await ReservedPort.open(parseHostPort(address))) : parseHostPort(address)
  return { listen: await at(listen), metricsListen: metrics === undefined ? undefined : await at(metrics) }
}

/** Copies of the audit outside of the database. */
function openAuditCopies({ options, scope, metrics, storage }: ProcessParts) {
  const { log, dataFolder, databaseUrl } = options
  const outside = { ...ownPlaces(dataFolder, databaseUrl), clock, log, meter: metrics.audit }
  const anchors = scope.own(new AuditAnchors({ ...outside, audit: storage.audit }))
  const sinks = scope.own(new AuditSinks({ ...outside, store: storage.auditSinks }))
  return {
    configure: async ({ auditSinks, auditAnchors, setAside = [] }: Configuration): Promise<void> => {
      const waiting = setAside.flatMap(({ kind, name }) => (kind === 'AuditSink' ? [name] : []))
      await Promise.all([sinks.configure(auditSinks, waiting), anchors.configure(auditAnchors)])
    },
    health: async (): Promise<AuditHealth> => ({ sinks: await sinks.health(), anchors: await anchors.health() }),
  }
}

type ProcessServices = ReturnType<typeof createServices> & { secondsToRetry(): number | undefined }

function openServices(
  { options, scope, metrics, replica, storage }: ProcessParts,
  retries: CreationRetries,
  installation: Omit<NonNullable<ProcessServices['installation']>, 'metrics'>,
): ProcessServices {
  const { source, log, dataFolder, environment, sharing, faults, workflowLimits } = options
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
    leaseMillis: faults?.leaseMillis ?? workflowLimits.leaseMillis,
    crash: faults?.crash,
    renewalTimes: options.renewalTimes,
    loopbackOnly: isLoopbackHost(parseHostPort(options.listen).host),
    environment,
    replica,
    installation: { ...installation, metrics: metricsAccess(sharing?.metricsOfAll ?? (() => metrics.registry)) },
  })
  const services = { ...shared, secondsToRetry: () => retries.seconds }
  metrics.watchGrants(shared.issuing?.grants ?? [])
  scope.own(services.journals)
  scope.own(services.auditReader)
  scope.own(services.events)
  scope.own(services.runChanges)
  scope.own(services.sessionChanges)
  return services
}

/** Creates what the configuration says, apart from objects that can't be created. */
async function startRunning({ options, scope }: ProcessParts, first: LoadResult, services: ProcessServices) {
  const { strict = false, log } = options
  const create = (one: Configuration): Promise<Runtime> => {
    services.tokenKeys.configure(keyIssuers(one))
    return createRuntime(one, services)
  }
  const { runtime, served: started } = await startConfiguration(first, create, { strict, served: [], log })
  return { running: scope.own(new RunningConfiguration(runtime, log)), started }
}

/** Runs, timers, mails and jobs. */
async function startBackgroundWork(
  { options, scope, metrics, storage, replica }: ProcessParts,
  parts: { readonly services: ProcessServices; readonly running: RunningConfiguration; readonly wakeUp: RunWakeUp },
): Promise<void> {
  const { attempts, ...workerLimits } = options.workflowLimits
  const { leaseMillis } = options.faults ?? {}
  const lease = leaseMillis === undefined ? {} : { leaseMillis }
  const limits = { ...workerLimits, retries: { ...defaultRetries, attempts }, ...lease }
  const mails = leaseMillis === undefined ? {} : { leaseMillis: leaseMillis * mailLeases }
  const leases = { timers: lease, mails }
  const background = scope.own(
    new BackgroundWork({ ...parts, storage, replica, limits, leases, mailMeter: metrics.mails }),
  )
  await background.start()
}

function watchMetrics(
  { options, metrics, storage }: ProcessParts,
  { found }: LoadResult,
  running: RunningConfiguration,
): void {
  metrics.workflows.watch(storage, options.log)
  metrics.audit.watch(storage.audit, options.log)
  metrics.reconciliations.watch({
    store: storage.reconciliations,
    isConfigured: (name) => running.current.configuration.reconciliations.has(name),
    log: options.log,
  })
  metrics.database.watchPool(storage.pool)
  metrics.watchDisk(options.dataFolder, options.log)
  metrics.configurationOk.set(1)
  metrics.objects(found)
}

/** The rotation and publishing of the keys of token endpoints; it has not started. */
function openKeyKeeping(
  { options, scope, metrics, storage }: ProcessParts,
  rings: ProcessServices['tokenKeys'],
  running: RunningConfiguration,
): KeeperLoop {
  const { dataFolder, log } = options
  const keeper = createKeyKeeper({
    rings,
    store: storage.keys,
    dataFolder,
    clock,
    log,
    meter: metrics.keys,
    useTarget: (name, work) => running.use((runtime) => work(runtime.target(name))),
  })
  return scope.own(new KeeperLoop({ keeper, rings, log }))
}

interface ChangeParts {
  /** What was read at the start, and what of it runs. */
  readonly first: LoadResult
  readonly started: LoadResult
  readonly retries: CreationRetries
  readonly running: RunningConfiguration
  readonly services: ProcessServices
  readonly loads: ConfigurationReport
  configureAudit(one: Configuration): Promise<void>
  /** Calls what looks at the configuration again after each change, also one that is refused. */
  wakeFollowers(): void
}

function openChanges({ options, scope, metrics }: ProcessParts, parts: ChangeParts): ConfigurationChanges {
  const { source, log, strict = false, sharing } = options
  const { first, started, retries, running, services, loads } = parts
  const changes = new ConfigurationChanges(first, started.notCreated ?? [], {
    source,
    retries,
    apply: (loaded, again) =>
      applyConfiguration(loaded, { running, services, metrics, strict, served: loads.served, log, again }),
    settled: (outcome, served) => {
      loads.settled(served, outcome)
      void source.settled(served, outcome)
      const { configuration } = running.current
      if (outcome === 'applied') void parts.configureAudit(configuration)
      services.tokenKeys.configure(keyIssuers(configuration))
      parts.wakeFollowers()
      if (outcome === 'applied') sharing?.onServed(configuration.hash)
    },
    unread: (err) => {
      loads.unread()
      log.error('configuration could not be read', { err })
    },
  })
  return scope.own(changes)
}
