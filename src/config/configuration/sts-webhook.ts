/** A certificate chain and its private key, as PEM. */
export interface CertificateWithKey {
  readonly certificate: string
  readonly privateKey: string
}

/** The listener at which API servers call the injector. */
export interface StsWebhookConfig {
  readonly at: string
  readonly listen: { readonly host: string; readonly port: number }
  /** PEM; only callers with a certificate of these CAs are accepted. Undefined: every caller is. */
  readonly clientAuthorities: string | undefined
  readonly tls: GivenWebhookTls | MadeWebhookTls
}

/** The operator provides the certificate and the MutatingWebhookConfiguration. */
export interface GivenWebhookTls extends CertificateWithKey {
  readonly kind: 'given'
  /** Where it is read again while the gateway runs; undefined if a change of it is a change of the configuration. */
  readonly files?: { readonly certFile: string; readonly keyFile: string } | undefined
}

/** The gateway creates and renews the certificate, and registers its CAs at the API server. */
export interface MadeWebhookTls {
  readonly kind: 'made'
  /** The name of the Kubernetes target. */
  readonly cluster: string
  readonly client: WebhookService | WebhookUrl
  /** The name of the MutatingWebhookConfiguration. */
  readonly configuration: string
}

interface WebhookService {
  readonly service: { readonly namespace: string; readonly name: string; readonly port: number; readonly path: string }
}

interface WebhookUrl {
  readonly url: string
}

/**
 * Replaces the host for URLs that only the webhook's listener answers. No request can have it, since it isn't a
 * valid host name.
 */
export const webhookHost = '(webhook)'
/** The path of the injector's webhook. */
export const webhookPath = '/sts/inject'

/**
 * The name under which the webhook's certificates are stored among the keys of endpoints, so no endpoint may have
 * it.
 */
export const webhookKeys = 'sts.injector'
