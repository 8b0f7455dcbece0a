import type https from 'node:https'
import type { FastifyInstance } from 'fastify'
import type { LoadResult } from '#config/load.ts'
import { formatIssue } from '#config/located-issue.ts'
import { AuditAnchors } from '#engine/audit/audit-anchors.ts'
import { AuditSinks } from '#engine/audit/audit-sinks.ts'
import { checkAuditKeys, loadAuditKeys } from '#engine/keys/audit-keys.ts'
import { checkSecretKeys } from '#engine/keys/secret-keys.ts'
import { MailWorker } from '#engine/mail/mail-worker.ts'
import { settleAbandoned } from '#engine/passwords/unknown-outcome.ts'
import { createRuntime, type Runtime } from '#engine/runtime.ts'
import type { RenewalTimes } from '#engine/session/session-renewal.ts'
import { KeeperLoop } from '#engine/sts/publish/keeper-loop.ts'
import { chaosLease } from '#engine/workflow/crash-point.ts'
import { defaultRetries } from '#engine/workflow/retry-policy.ts'
import { systemClock } from '#kernel/clock.ts'
import { parseHostPort } from '#kernel/host-port.ts'
import type { Logger } from '#kernel/logger.ts'
import { isLoopbackHost } from '#kernel/loopback.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import type { Configuration } from '#sdk/configuration.ts'
import { webhookHost, webhookPath } from '#sdk/sts-webhook.ts'
import type { AccessLog } from '#server/access-log.ts'
import { createApp } from '#server/app.ts'
import { ConfigurationRefused } from '#server/configuration-refused.ts'
import type { ConfigurationSource, LoadOutcome } from '#server/configuration-source.ts'
import { DurableWork } from '#server/durable-work.ts'
import { type ConnectionLimits, limitListeners } from '#server/http-limits.ts'
import { CertificateReload, readPair } from '#server/listener-certificate.ts'
import { closeListener, listenAt } from '#server/listening.ts'
import { createMetrics } from '#server/metrics.ts'
import { createOperationsApp } from '#server/operations-app.ts'
import { openDataFolder, ownPlaces, protectGivenKey } from '#server/private-files.ts'
import { RunningConfiguration } from '#server/reload.ts'
import { createServices } from '#server/services.ts'
import { createKeyBox, createKeyKeeper, keyIssuers, objectsOf } from '#server/token-keys.ts'
import { reportIgnoredHeaders, TrustedProxies } from '#server/trusted-proxies.ts'
import { WebhookListener } from '#server/webhook-listener.ts'
import { readAddress } from '#storage/client/databases.ts'
import { lockInstance } from '#storage/instance-lock.ts'
import { openRunWakeUp, openStorage, type Storage } from '#storage/open.ts'

export interface GatewayOptions {
  /** It is closed with the gateway, or when that does not start. */
  readonly source: ConfigurationSource
  readonly dataFolder: string
  readonly databaseUrl: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly listen: string
  /** Undefined: no operators' listener. */
  readonly metrics: string | undefined
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly trustedProxies: readonly string[]
  readonly connectionLimits?: ConnectionLimits
  readonly workflowLimits: WorkflowLimits
  readonly renewalTimes?: RenewalTimes
  readonly log: Logger
  readonly accessLog: AccessLog
}

/** How stored runs are executed by this process. */
export interface WorkflowLimits {
  /** Attempts of one step, the first included. */
  readonly attempts: number
  readonly leaseMillis: number
  /** How long one step may take. */
  readonly stepMillis: number
  /** Runs at the same time. */
  readonly atOnce: number
}

export interface Gateway {
  /** Where it listens, with the port it really got. */
  readonly address: string
  readonly metricsAddress: string | undefined
  /** Where API servers asked the injector when it started; undefined where it has no listener. */
  readonly webhookAddress: string | undefined
  /** Reads the configuration and the certificates of listeners again now, whether they changed or not. */
  reload(): Promise<void>
  /** Takes no new requests, ends those under way, closes everything. */
  close(): Promise<void>
}

const expiredSessionsEveryMs = 60_000
/** A mail is held without a renewal, so for longer than a step. */
const mailLeases = 4

/** Starts everything, or throws with nothing left open: ConfigurationRefused when the configuration is at fault. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { value, scope } = await buildScoped((scope) => start(options, scope))
  return { ...value, close: () => scope.close() }
}

async function start(options: GatewayOptions, scope: Scope): Promise<Omit<Gateway, 'close'>> {
  const { log } = options
  const clock = systemClock
  const source = scope.own(options.source)
  const first = await source.load()
  if (first.configuration === undefined) await source.settled(first, 'refused')
  const configuration = usable(first, log)
  checkSecretKeys(options.environment)
  checkAuditKeys(options.environment)
  openDataFolder(options.dataFolder, { log, create: true, databaseUrl: options.databaseUrl })
  if (options.tls !== undefined) protectGivenKey(options.tls.keyFile, { log })
  const dispatcher = await openRunWakeUp(options.databaseUrl, log)
  const database = {
    dataFolder: options.dataFolder,
    ...(options.databaseUrl === undefined ? {} : { url: options.databaseUrl }),
  }
  scope.own(await lockInstance(database))
  const storage = scope.own(
    openStorage({
      ...database,
      clock,
      log,
      wake: dispatcher,
      auditKeys: await loadAuditKeys(options, 'gateway'),
    }),
  )
  await storage.ready()
  await authenticateAudit(storage, log)
  // Before anyone is served: the sessions of users whose password a process was writing when it was killed.
  const isAlone = options.databaseUrl === undefined || readAddress(options.databaseUrl).dialect === 'sqlite'
  await settleAbandoned(storage.passwordChanges, isAlone ? 'all' : 'expired')
  const { dataFolder } = options
  const { folder: configFolder, secrets } = source
  const metrics = createMetrics()
  const outside = { ...ownPlaces(dataFolder, options.databaseUrl), clock, log, meter: metrics.audit }
  const anchors = scope.own(new AuditAnchors({ ...outside, audit: storage.audit }))
  const sinks = scope.own(new AuditSinks({ ...outside, store: storage.auditSinks }))
  const configureAudit = async ({ auditSinks, auditAnchors }: Configuration): Promise<void> => {
    await Promise.all([sinks.configure(auditSinks), anchors.configure(auditAnchors)])
  }
  const { attempts, ...workerLimits } = options.workflowLimits
  const lease = chaosLease(options.environment)
  const limits = { ...workerLimits, retries: { ...defaultRetries, attempts }, ...lease }
  const services = createServices({
    storage,
    configFolder,
    dataFolder,
    secrets,
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
    ...(options.renewalTimes === undefined ? {} : { renewalTimes: options.renewalTimes }),
    loopbackOnly: isLoopbackHost(parseHostPort(options.listen).host),
    environment: options.environment,
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
  scope.own(new MailWorker(mails, chaosLease(options.environment, mailLeases)))
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

  // The operators' listener answers before the others are open: until then the gateway isn't ready.
  let state: 'starting' | 'serving' | 'shutting down' = 'starting'
  const ready = async (): Promise<void> => {
    if (state !== 'serving') throw new Error(state)
    await storage.ready()
  }
  // The operators' listener opens first and closes last, so that they can watch a drain.
  const connections = limitListeners(options.connectionLimits, log)
  const operations = createOperationsApp({ metrics, log, ready, limits: connections.operations })
  const metricsAddress =
    options.metrics === undefined ? undefined : await listen(operations, options.metrics, 'http', scope)
  const ignored = reportIgnoredHeaders({ count: () => metrics.forwardedHeadersIgnored(), log, clock })
  const proxies = new TrustedProxies(options.trustedProxies, ignored)
  const { accessLog, tls: files } = options
  const pair = files === undefined ? undefined : await readPair(files)
  const tls = pair === undefined ? undefined : { cert: pair.certificate, key: pair.privateKey }
  const app = createApp({ running, metrics, log, accessLog, proxies, limits: connections.public, tls, ready })
  const address = await listen(app, options.listen, tls === undefined ? 'http' : 'https', scope)
  const certificate =
    files === undefined || pair === undefined
      ? undefined
      : scope.own(
          new CertificateReload({
            listener: 'public',
            files,
            served: pair,
            server: app.server as unknown as https.Server,
            clock,
            log,
            meter: metrics.certificates,
          }),
        )

  const webhook = scope.own(
    new WebhookListener({
      configuration: () => running.current.configuration,
      store: storage.keys,
      box: createKeyBox({ environment: options.environment, dataFolder }),
      clock,
      log,
      meter: metrics.webhook,
      useObjects: (cluster, work) => running.use((runtime) => work(objectsOf(runtime.target(cluster), cluster))),
      createApp: (tls) =>
        createApp({
          running,
          metrics,
          log,
          accessLog,
          proxies: new TrustedProxies([]),
          limits: connections.webhook,
          tls,
          ready,
          only: { host: webhookHost, path: webhookPath },
        }),
    }),
  )
  await webhook.start()
  state = 'serving'

  await configureAudit(configuration)
  // Reading back may lead here, so there is somebody to answer.
  keeping.start()
  const apply = async (loaded: LoadResult): Promise<void> => {
    const outcome = await swapIn(loaded, running, services, metrics, log)
    void source.settled(loaded, outcome)
    if (outcome === 'applied') void configureAudit(running.current.configuration)
    tokenKeys.configure(keyIssuers(running.current.configuration))
    keeping.wake()
    webhook.wake()
  }
  void source.settled(first, 'applied')
  const unread = (err: unknown): void => log.error('configuration could not be read', { err })
  const reload = async (): Promise<void> => {
    await Promise.all([certificate?.look(), source.load().then(apply).catch(unread)])
    webhook.wake()
  }
  scope.own(source.watch({ hash: first.hash, onChange: apply, onError: unread }))
  const sweeper = setInterval(() => {
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
  }, expiredSessionsEveryMs)
  sweeper.unref()
  scope.defer(() => clearInterval(sweeper))
  scope.defer(() => {
    state = 'shutting down'
    services.events.drain()
  })
  return { address, metricsAddress, webhookAddress: webhook.address, reload }
}

/** Runs before anything is written. A gateway with a forged audit continues to write to it, and logs an error. */
async function authenticateAudit({ audit }: Storage, log: Logger): Promise<void> {
  const { sealed, records, forged } = await audit.authenticate()
  if (sealed) log.info('the audit is authenticated from now on; existing records are sealed as they are', { records })
  if (forged.length > 0) {
    log.error('the audit was changed without its key; run "gatehouse audit verify"', { chains: forged })
  }
}

/** The configuration, with its warnings logged; throws ConfigurationRefused when it has errors. */
function usable({ configuration, issues }: LoadResult, log: Logger): Configuration {
  const lines = issues.map(formatIssue)
  if (configuration === undefined) throw new ConfigurationRefused(lines)
  for (const problem of lines) log.warn('configuration warning', { problem })
  return configuration
}

/** A good configuration takes over; a bad one is reported, and the running one goes on. */
async function swapIn(
  loaded: LoadResult,
  running: RunningConfiguration,
  services: Parameters<typeof createRuntime>[1],
  metrics: ReturnType<typeof createMetrics>,
  log: Logger,
): Promise<LoadOutcome> {
  let next: Runtime
  try {
    next = await createRuntime(usable(loaded, log), services)
  } catch (err) {
    metrics.reloads.inc({ outcome: 'refused' })
    metrics.configurationOk.set(0)
    const problems = err instanceof ConfigurationRefused ? err.problems : undefined
    // A mistake in the YAML is named by its place; only other failures need a stack trace.
    log.error('configuration change refused; the running one stays', problems === undefined ? { err } : { problems })
    return problems === undefined ? 'failed' : 'refused'
  }
  running.swap(next)
  metrics.reloads.inc({ outcome: 'applied' })
  metrics.configurationOk.set(1)
  log.info('configuration change applied', { hash: next.configuration.hash })
  return 'applied'
}

async function listen(app: FastifyInstance, at: string, scheme: 'http' | 'https', scope: Scope): Promise<string> {
  scope.defer(() => closeListener(app))
  return listenAt(app, parseHostPort(at), scheme)
}
