import type https from 'node:https'
import type { Registry } from 'prom-client'
import { webhookHost, webhookPath } from '#config/configuration/sts-webhook.ts'
import type { FoundObject } from '#config/load/set-aside.ts'
import type { ListenerFacts } from '#features/portal/access/system-facts.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Scope } from '#kernel/scope.ts'
import { type ConnectionLimits, limitListeners } from '#requests/listener/http-limits.ts'
import type { Listener } from '#requests/listener/http-server.ts'
import { reportIgnoredHeaders, TrustedProxies } from '#requests/listener/trusted-proxies.ts'
import { createApp } from '#server/app.ts'
import type { Storage } from '#server/composition/stores.ts'
import { createKeyBox, objectsOf } from '#server/composition/token-keys.ts'
import { type AuditHealth, readHealth } from '#server/health.ts'
import { CertificateReload, readPair } from '#server/listener-certificate.ts'
import type { AccessLog } from '#server/log/log.ts'
import type { Metrics } from '#server/metrics/metrics.ts'
import { createReadyMetric } from '#server/metrics/process-metrics.ts'
import { createOperationsApp, type Operations } from '#server/operations.ts'
import type { RunningConfiguration } from '#server/reload.ts'
import { WebhookListener } from '#server/webhook-listener.ts'

interface ListenersParts {
  readonly listen: ListenAddress
  /** Undefined for no metrics listener. */
  readonly metricsListen: ListenAddress | undefined
  readonly sharing: Sharing | undefined
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly trustedProxies: readonly string[]
  readonly connectionLimits?: ConnectionLimits
  readonly dataFolder: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly running: RunningConfiguration
  audit(): Promise<AuditHealth>
  /** The objects of the running configuration. */
  objects(): readonly FoundObject[]
  readonly storage: Storage
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Logger
  readonly accessLog: AccessLog
}

type ListenAddress = Parameters<Listener['listen']>[0]

/** For a gateway whose listeners other processes of this machine serve too. */
export interface Sharing {
  /** The address at which another process serves the metrics of all. */
  readonly metricsAddress: string | undefined
  /** The metrics of all processes together. */
  metricsOfAll(): Promise<Registry>
  /** Called with the hash of the configuration that is served, at the start and after each change. */
  onServed(hash: string): void
}

interface Listeners {
  /** The public address, with the actual port. */
  readonly address: string
  readonly metricsAddress: string | undefined
  readonly webhookAddress: string | undefined
  readonly operations: Operations
  reloadCertificate(): Promise<void> | undefined
  /** The open listeners, with the certificates that they serve. */
  describe(): readonly ListenerFacts[]
  /** The webhook reads the configuration again. */
  wakeWebhook(): void
  /** From now on, `/ready` returns 503. */
  startShutdown(): void
}

/** What the three listeners share. */
interface SharedParts {
  readonly parts: ListenersParts
  readonly limits: ReturnType<typeof limitListeners>
  ready(): Promise<void>
}

/** Opens the metrics, public and webhook listeners; the gateway is ready when all are open. */
export async function openListeners(parts: ListenersParts, scope: Scope): Promise<Listeners> {
  let state: 'starting' | 'serving' | 'shutting down' = 'starting'
  const ready = async (): Promise<void> => {
    if (state !== 'serving') throw new Error(state)
    await parts.storage.ready()
  }
  createReadyMetric(parts.metrics.registry, ready)
  const shared: SharedParts = { parts, limits: limitListeners(parts.connectionLimits, parts.log), ready }
  const operations = operationsOf(shared)
  // The metrics listener opens first and closes last, so that operators can watch a drain.
  const metricsAddress = await openMetrics(shared, operations, scope)
  const { address, certificate } = await openPublic(shared, scope)
  const webhook = scope.own(createWebhook(shared))
  await webhook.start()
  state = 'serving'
  const shownMetrics = metricsAddress ?? parts.sharing?.metricsAddress
  return {
    address,
    metricsAddress,
    webhookAddress: webhook.address,
    operations,
    reloadCertificate: () => certificate?.look(),
    describe: () => [
      { name: 'public', address, certificate: certificate?.describe() },
      ...(shownMetrics === undefined ? [] : [{ name: 'metrics', address: shownMetrics } as const]),
      ...(webhook.address === undefined
        ? []
        : [{ name: 'webhook', address: webhook.address, certificate: webhook.certificate() } as const]),
    ],
    wakeWebhook: () => webhook.wake(),
    startShutdown: () => {
      state = 'shutting down'
    },
  }
}

function operationsOf({ parts: { running, metrics, audit, objects, log }, ready }: SharedParts): Operations {
  const check = () => running.use((runtime) => runtime.checkOutside())
  return {
    metrics: () => metrics.registry,
    ready,
    health: () => readHealth({ ready, check, audit, objects, log }),
  }
}

async function openMetrics(
  { parts: { metricsListen, metrics, log }, limits }: SharedParts,
  operations: Operations,
  scope: Scope,
): Promise<string | undefined> {
  if (metricsListen === undefined) return undefined
  const app = createOperationsApp({ operations, limits: limits.operations, meter: metrics.connections, log })
  return await listen(app, metricsListen, scope)
}

/** Without TLS there is no certificate. */
async function openPublic(
  { parts, limits, ready }: SharedParts,
  scope: Scope,
): Promise<{ readonly address: string; readonly certificate?: CertificateReload }> {
  const { running, metrics, clock, log, accessLog, tls: files } = parts
  const ignored = reportIgnoredHeaders({ count: () => metrics.forwardedHeadersIgnored(), log, clock })
  const proxies = new TrustedProxies(parts.trustedProxies, ignored)
  const served = files === undefined ? undefined : await readPair(files)
  const tls = served === undefined ? undefined : { cert: served.certificate, key: served.privateKey }
  const app = createApp({ running, metrics, log, accessLog, proxies, limits: limits.public, tls, ready })
  const address = await listen(app, parts.listen, scope)
  if (files === undefined || served === undefined) return { address }
  const server = app.server as unknown as https.Server
  const meter = metrics.certificates
  return {
    address,
    certificate: scope.own(new CertificateReload({ listener: 'public', files, served, server, clock, log, meter })),
  }
}

function createWebhook({ parts, limits, ready }: SharedParts): WebhookListener {
  const { running, storage, metrics, clock, log, accessLog, environment, dataFolder } = parts
  return new WebhookListener({
    configuration: () => running.current.configuration,
    store: storage.keys,
    box: createKeyBox({ environment, dataFolder }),
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
        limits: limits.webhook,
        tls,
        ready,
        only: { host: webhookHost, path: webhookPath },
      }),
  })
}

async function listen(listener: Listener, at: ListenAddress, scope: Scope): Promise<string> {
  scope.own(listener)
  return listener.listen(at)
}
