import { X509Certificate } from 'node:crypto'
import type https from 'node:https'
import { isDeepStrictEqual } from 'node:util'
import type { Configuration } from '#config/configuration/configuration.ts'
import type {
  CertificateWithKey,
  GivenWebhookTls,
  MadeWebhookTls,
  StsWebhookConfig,
} from '#config/configuration/sts-webhook.ts'
import type { CertificateFacts } from '#features/portal/access/system-facts.ts'
import {
  keepWebhookTls,
  registerWebhook,
  type WebhookKeeperOptions,
  type WebhookObjects,
} from '#features/sts/service/webhook-keeper.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { Listener, ListenerTls } from '#requests/listener/http-server.ts'
import {
  checkPair,
  describeCertificate,
  readPair,
  replaceCertificate,
  timeProblem,
} from '#server/listener-certificate.ts'

interface WebhookMeter {
  /** When the served certificate expires; undefined if there is none. */
  serves(ends: Date | undefined): void
  /** Whether that is the newest certificate. */
  current(isCurrent: boolean): void
  /** Whether the webhook configuration was written to the API server. */
  registered(ok: boolean): void
}

interface WebhookListenerParts extends Omit<WebhookKeeperOptions, 'serverNames'> {
  /** The current configuration. */
  configuration(): Configuration
  createApp(tls: ListenerTls): Listener
  /** Works on the objects of a cluster of the running configuration. */
  useObjects<T>(cluster: string, work: (objects: WebhookObjects) => Promise<T>): Promise<T>
  readonly log: Logger
  readonly meter: WebhookMeter
  readonly everyMillis?: number
  /** If the certificate is in files that the operator replaces. */
  readonly filesMillis?: number
  /** After an error. */
  readonly againMillis?: number
}

interface Open {
  readonly app: Listener
  readonly config: Pick<StsWebhookConfig, 'listen' | 'clientAuthorities'>
  readonly address: string
  served: CertificateWithKey
}

/**
 * The listener at which API servers call the injector, as the running configuration has it. It checks its
 * certificate every minute, and new connections use a new one; nothing is restarted.
 */
export class WebhookListener implements Closable {
  readonly #parts: WebhookListenerParts
  #open: Open | undefined
  #round: Promise<void> | undefined
  #again = false
  #closed = false
  #timer: NodeJS.Timeout | undefined

  constructor(parts: WebhookListenerParts) {
    this.#parts = parts
  }

  /** Undefined while it does not listen. */
  get address(): string | undefined {
    return this.#open?.address
  }

  /** The certificate that new connections get; undefined while it does not listen. */
  certificate(): CertificateFacts | undefined {
    return this.#open && describeCertificate(this.#open.served, this.#parts.clock())
  }

  /** Throws if it is configured and can't listen. If the API server is unavailable, the webhook is registered later. */
  async start(): Promise<void> {
    const { stsWebhook } = this.#parts.configuration()
    if (stsWebhook !== undefined) {
      const certificate = stsWebhook.tls.kind === 'given' ? stsWebhook.tls : (await this.#keep(stsWebhook.tls)).server
      await this.#serve(stsWebhook, certificate)
    }
    this.wake()
  }

  /** For example after a change of the configuration. */
  wake(): void {
    if (this.#closed) return
    clearTimeout(this.#timer)
    if (this.#round !== undefined) {
      this.#again = true
      return
    }
    this.#again = false
    this.#round = this.#look().then((millis) => {
      this.#round = undefined
      if (this.#closed) return
      this.#timer = setTimeout(() => this.wake(), this.#again ? 0 : millis)
      this.#timer.unref()
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#round
    await this.#shut()
  }

  /** The milliseconds until the next check. */
  async #look(): Promise<number> {
    const { log, everyMillis = 60_000, filesMillis = 10_000, againMillis = 15_000 } = this.#parts
    try {
      await this.#pass()
      const tls = this.#parts.configuration().stsWebhook?.tls
      return tls?.kind === 'given' && tls.files !== undefined ? Math.min(everyMillis, filesMillis) : everyMillis
    } catch (err) {
      log.error('the injector webhook is misconfigured', { err })
      return againMillis
    }
  }

  async #pass(): Promise<void> {
    const configuration = this.#parts.configuration()
    const { stsWebhook: config } = configuration
    if (config === undefined) return this.#shut()
    const { tls } = config
    if (tls.kind === 'given') return this.#serveGiven(config, tls)
    const kept = await this.#keep(tls)
    // An old certificate is better than none, even if the API server does not know it.
    await this.#serve(config, this.#open?.served ?? kept.server)
    const { meter } = this.#parts
    meter.current(this.#open?.served.certificate === kept.server.certificate)
    await this.#register(configuration, tls, kept)
    await this.#serve(config, kept.server)
    meter.current(true)
  }

  async #serveGiven(config: StsWebhookConfig, tls: GivenWebhookTls): Promise<void> {
    const { meter } = this.#parts
    try {
      await this.#serve(config, tls.files === undefined ? tls : await readPair(tls.files))
      meter.current(true)
    } catch (error) {
      meter.current(false)
      throw error
    }
  }

  #keep(tls: MadeWebhookTls): ReturnType<typeof keepWebhookTls> {
    return keepWebhookTls({ ...this.#parts, serverNames: serverNames(tls) })
  }

  async #register(
    { stsEndpoints }: Configuration,
    tls: MadeWebhookTls,
    kept: Awaited<ReturnType<typeof keepWebhookTls>>,
  ): Promise<void> {
    const { meter, useObjects } = this.#parts
    const webhook = {
      name: tls.configuration,
      labels: stsEndpoints.flatMap(({ pods }) => (pods === undefined ? [] : [pods.label])),
      client: tls.client,
      ownNamespace: 'service' in tls.client ? tls.client.service.namespace : undefined,
    }
    const options = { ...this.#parts, serverNames: serverNames(tls) }
    try {
      await useObjects(tls.cluster, (objects) => registerWebhook(options, kept, webhook, objects))
      meter.registered(true)
    } catch (error) {
      meter.registered(false)
      throw error
    }
  }

  /** Opens, moves or renews the listener. If it throws, the open listener stays if possible. */
  async #serve({ listen, clientAuthorities }: StsWebhookConfig, certificate: CertificateWithKey): Promise<void> {
    const open = this.#open
    const config = { listen, clientAuthorities }
    if (open === undefined || !isDeepStrictEqual(open.config, config)) {
      const tls = { cert: certificate.certificate, key: certificate.privateKey, clientAuthorities }
      if (open !== undefined && isDeepStrictEqual(open.config.listen, listen)) await this.#shut()
      const app = this.#parts.createApp(tls)
      const address = await app.listen(listen)
      await this.#shut()
      this.#open = { app, config, address, served: certificate }
      this.#parts.log.info('the webhook of the injector listens', { address })
      const problem = timeProblem(certificate, this.#parts.clock())
      if (problem !== undefined)
        this.#parts.log.error('the API server refuses the certificate of the webhook', { problem })
    } else if (open.served.certificate !== certificate.certificate) {
      checkPair(certificate)
      const problem = timeProblem(certificate, this.#parts.clock())
      if (problem !== undefined) throw new Error(`the old certificate is kept: ${problem}`)
      replaceCertificate(open.app.server as https.Server, certificate, clientAuthorities)
      open.served = certificate
      this.#parts.log.info('the webhook of the injector has a new certificate')
    }
    this.#parts.meter.serves(new Date(new X509Certificate(certificate.certificate).validTo))
  }

  async #shut(): Promise<void> {
    const open = this.#open
    if (open === undefined) return
    this.#open = undefined
    this.#parts.meter.serves(undefined)
    await open.app.close()
  }
}

/** The name that the API server calls: a Service by its short name. */
function serverNames({ client }: MadeWebhookTls): readonly string[] {
  if ('url' in client) return [new URL(client.url).hostname.replace(/^\[|\]$/g, '')]
  const { name, namespace } = client.service
  return [`${name}.${namespace}.svc`, `${name}.${namespace}.svc.cluster.local`]
}
