import type { KeyObject } from 'node:crypto'

/** The signature algorithms that every consumer of workload tokens takes, and the one for those that like it short. */
export type TokenAlgorithm = 'RS256' | 'ES256'

/** The key that signs now. `kid` is its RFC 7638 thumbprint. */
export interface TokenKey {
  readonly kid: string
  readonly alg: TokenAlgorithm
  readonly privateKey: KeyObject
}

/** Exactly `kty`, `use`, `alg`, `kid` and the numbers of the key (`n`, `e`, or `crv`, `x`, `y`): some consumers refuse more. */
export type PublicTokenKey = Readonly<Record<string, string>>

/** The two documents of an issuer, as they are published and served. */
export interface IssuerDocuments {
  readonly discovery: Readonly<Record<string, unknown>>
  readonly keys: { readonly keys: readonly PublicTokenKey[] }
  /** How long a reader may keep them, for the header `Cache-Control`; rotation waits for that long. */
  readonly maxAgeSeconds: number
}

/** The keys of token endpoints, by the name of the endpoint. Each has its own, and they change while it runs. */
export interface TokenKeys {
  /**
   * The key to sign with at this moment: asked for with each token, and not kept. Whoever verifies has had the time to
   * know it. What it signs ends within the `ttlSeconds` of the endpoint, because it is forgotten that long after its
   * last use. Rejects with NOT_FOUND for an endpoint that is not configured, and with TARGET_UNREACHABLE where it cannot
   * be told which key that is.
   */
  active(endpoint: string): Promise<TokenKey>
  /** The keys that verify, now or soon: the one that signs first. */
  published(endpoint: string): Promise<readonly PublicTokenKey[]>
  /** What `issuer-docs`, `/.well-known/openid-configuration` and `/certs` answer, and what is published. */
  documents(endpoint: string): Promise<IssuerDocuments>
}

/** What the configuration says of the keys and documents of one endpoint. */
export interface TokenIssuer {
  /** The name of the endpoint. */
  readonly endpoint: string
  /** `https://host` or `https://host/path`, without a slash at the end: the `iss` of its tokens, byte for byte. */
  readonly issuer: string
  readonly algorithm: TokenAlgorithm
  /** Where the configuration's `keys/` folder or a secret has a private key of this name, that one is used. */
  readonly keypair: string
  /** The longest life of a token. */
  readonly maxTokenSeconds: number
  /** Claims beyond those that every token has. */
  readonly claims: readonly string[]
  /** A made key is replaced when it has signed this long. */
  readonly rotateSeconds: number
  /** How visibility is proven: `issuer` reads the documents back from the issuer URL; `written` trusts what was written. */
  readonly readBack: 'issuer' | 'written'
  /** How long caches between the issuer's host and its readers may keep the documents, where that is known. */
  readonly cdnSeconds: number | undefined
  readonly destinations: readonly PublishDestination[]
}

/** Where both documents are put, besides being served by the gateway. */
export type PublishDestination = FolderDestination | S3Destination | ConfigMapDestination

interface AnyDestination {
  /** Called by POST after a change, to make caches forget. */
  readonly invalidate?: { readonly url: string; readonly header?: string; readonly secret?: string }
}

export interface FolderDestination extends AnyDestination {
  readonly type: 'folder'
  readonly folder: string
}

export interface S3Destination extends AnyDestination {
  readonly type: 's3'
  readonly bucket: string
  readonly prefix: string
  readonly region: string
  /** Undefined: Amazon's own. */
  readonly endpoint: string | undefined
  readonly pathStyle: boolean
  /** Undefined: found by the SDK in its usual places. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined
}

export interface ConfigMapDestination extends AnyDestination {
  readonly type: 'configmap'
  /** The name of the Kubernetes target. */
  readonly target: string
  readonly namespace: string
  readonly name: string
}
