import type { TokenAlgorithm } from '#protocols/jwt/signing-key.ts'
import type { SpiffeBundle } from '#protocols/sts/spiffe.ts'

/** The current signing key. `kid` is its RFC 7638 thumbprint. The private part may be in another process. */
export interface TokenKey {
  readonly kid: string
  readonly alg: TokenAlgorithm
  /**
   * The signature in the form of RFC 7518. Rejects with TARGET_UNREACHABLE if another service stores the key and is
   * unavailable.
   */
  sign(content: Buffer): Promise<Buffer>
}

/**
 * Exactly `kty`, `use`, `alg`, `kid` and the numbers of the key (`n`, `e`, or `crv`, `x`, `y`): some consumers
 * reject more.
 */
export type PublicTokenKey = Readonly<Record<string, string>>

/** The documents of an issuer, as published and served. */
export interface IssuerDocuments {
  readonly discovery: Readonly<Record<string, unknown>>
  readonly keys: { readonly keys: readonly PublicTokenKey[] }
  /** Only of a SPIFFE trust domain. */
  readonly bundle?: SpiffeBundle
  /** How long a reader may cache them, for the header `Cache-Control`; rotation waits that long. */
  readonly maxAgeSeconds: number
}

/** The keys of token endpoints, by the name of the endpoint. Each has its own, which change while it runs. */
export interface TokenKeys {
  /**
   * The current signing key: request it for each token, and don't keep it. Verifiers have had time to learn it. Its
   * signatures must expire within the `ttlSeconds` of the endpoint, because it is deleted that long after its last
   * use. Rejects with NOT_FOUND for an endpoint that is not configured, and with TARGET_UNREACHABLE if the current
   * key is unknown.
   */
  active(endpoint: string): Promise<TokenKey>
  /** The keys that verify, now or soon: the signing key first. */
  published(endpoint: string): Promise<readonly PublicTokenKey[]>
  /**
   * The documents that `issuer-docs`, `/.well-known/openid-configuration`, `/certs` and `/bundle` return, and that are
   * published.
   */
  documents(endpoint: string): Promise<IssuerDocuments>
  /** Whether an operator revoked this key of the endpoint. False for a key that is unknown. */
  isRevoked(endpoint: string, kid: string): Promise<boolean>
}

/** The configuration of the keys and documents of one endpoint. */
export interface TokenIssuer {
  /** The name of the endpoint. */
  readonly endpoint: string
  /** `https://host` or `https://host/path`, without a trailing slash: the `iss` of its tokens, byte for byte. */
  readonly issuer: string
  /** Its tokens are JWT-SVIDs, and its keys are also published as a bundle. */
  readonly isTrustDomain?: boolean
  readonly algorithm: TokenAlgorithm
  /** If the configuration's `keys/` folder or a secret has a private key of this name, it is used. */
  readonly keypair: string
  /** The longest lifetime of a token. */
  readonly maxTokenSeconds: number
  /** Claims beyond those that every token has. */
  readonly claims: readonly string[]
  /** A generated key is replaced after it has signed for this long. */
  readonly rotateSeconds: number
  /**
   * How visibility is proven: `issuer` reads the documents back from the issuer URL; `written` trusts what was
   * written.
   */
  readonly readBack: 'issuer' | 'written'
  /** How long caches between the issuer's host and its readers may keep the documents, if known. */
  readonly cdnSeconds: number | undefined
  readonly destinations: readonly PublishDestination[]
  /** The service that stores the private keys; undefined: the gateway's own database. */
  readonly custody?: TransitCustody | undefined
}

/** A key in the Transit engine of OpenBao or Vault. */
export interface TransitCustody {
  /** `https://host:port`, without a trailing slash. */
  readonly address: string
  readonly namespace: string | undefined
  readonly mount: string
  readonly key: string
  /** In PEM; undefined: the CAs that the runtime trusts. */
  readonly ca: string | undefined
  readonly login: TransitLogin
  /** The gateway creates new keys; the service signs only until one of them does. */
  readonly leave: boolean
}

/** How the gateway authenticates: by a token, or by a JWT that it exchanges for one. */
type TransitLogin =
  | { readonly type: 'token'; readonly token: string }
  | { readonly type: 'jwt'; readonly mount: string; readonly role: string; readonly jwtFile: string }

/** Where both documents are written, besides being served by the gateway. */
export type PublishDestination = FolderDestination | S3Destination | ConfigMapDestination

interface AnyDestination {
  /** Called by POST after a change, to clear caches. */
  readonly invalidate?: {
    readonly url: string
    readonly header?: string | undefined
    readonly secret?: string | undefined
  }
}

interface FolderDestination extends AnyDestination {
  readonly type: 'folder'
  readonly folder: string
}

/** A bucket that gets the issuer's documents. */
export interface S3Destination extends AnyDestination {
  readonly type: 's3'
  readonly bucket: string
  readonly prefix: string
  readonly region: string
  /** Undefined: Amazon's own. */
  readonly endpoint: string | undefined
  readonly pathStyle: boolean
  /** Undefined: found by the SDK in its default places. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined
}

/** A ConfigMap that gets the issuer's documents. */
export interface ConfigMapDestination extends AnyDestination {
  readonly type: 'configmap'
  /** The name of the Kubernetes target. */
  readonly target: string
  readonly namespace: string
  readonly name: string
}
