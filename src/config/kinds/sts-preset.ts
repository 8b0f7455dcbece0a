import type { JsonObject } from '#kernel/json.ts'
import { type TokenAlgorithm, tokenAlgorithms } from '#protocols/jwt/signing-key.ts'
import type { StsPreset } from './sts.ts'

/** A value that an SDK needs besides the token. Annotations and `injector.settings` set it under this name. */
interface PresetSetting {
  readonly name: string
  readonly form: RegExp
  readonly example: string
  /** Without it, the SDK could not use the token. */
  readonly needed?: boolean
  /** With `${attribute}` for attributes of the workload. */
  readonly fallback?: string
}

interface PresetFile {
  /** In the folder of the endpoint's token. */
  readonly name: string
  /** The variable with the path of the file. */
  readonly variable: string
  /** Settings without which the file is not written. */
  readonly needs: readonly string[]
  content(read: (name: string) => string | undefined): JsonObject
}

/**
 * What the SDK of a consumer reads in a container. Texts have `${name}` for settings and attributes of the
 * workload.
 */
export interface PresetInjection {
  /** The variable with the path of the token. */
  readonly tokenVariable: string
  /** The setting that the annotation named like the label sets. */
  readonly main?: string
  readonly settings: readonly PresetSetting[]
  /** They are set together or not at all: half of them would present one identity as another. */
  readonly identity: Readonly<Record<string, string>>
  /** Each is set unless the container sets it. */
  readonly other: Readonly<Record<string, string>>
  readonly file?: PresetFile
}

const word = /^[\w.@:/+=,~-]{1,512}$/
const address = /^https:\/\/[^\s"\\]{1,500}$/
const uuid = /^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/
const exampleId = '11111111-2222-3333-4444-555555555555'
const googleProvider = 'projects/123456789012/locations/global/workloadIdentityPools/clusters/providers/k8s'
const impersonation = 'https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts'

const injections: Readonly<Record<StsPreset, PresetInjection>> = {
  aws: {
    tokenVariable: 'AWS_WEB_IDENTITY_TOKEN_FILE',
    main: 'role',
    settings: [
      {
        name: 'role',
        form: /^arn:[a-z-]+:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/,
        example: 'arn:aws:iam::123456789012:role/cart',
        needed: true,
      },
      { name: 'region', form: /^[a-z]{2,}(?:-[a-z0-9]+){2,4}$/, example: 'eu-central-1' },
      { name: 'session-name', form: /^[\w+=,.@-]{2,64}$/, example: 'shop-cart', fallback: '${workload}' },
    ],
    identity: { AWS_ROLE_ARN: '${role}' },
    other: {
      AWS_ROLE_SESSION_NAME: '${session-name}',
      AWS_REGION: '${region}',
      AWS_DEFAULT_REGION: '${region}',
      AWS_STS_REGIONAL_ENDPOINTS: 'regional',
    },
  },
  azure: {
    tokenVariable: 'AZURE_FEDERATED_TOKEN_FILE',
    main: 'client-id',
    settings: [
      { name: 'client-id', form: uuid, example: exampleId, needed: true },
      { name: 'tenant-id', form: /^[A-Za-z0-9.-]{1,253}$/, example: exampleId, needed: true },
      {
        name: 'authority-host',
        form: address,
        example: 'https://login.microsoftonline.us/',
        fallback: 'https://login.microsoftonline.com/',
      },
    ],
    identity: { AZURE_CLIENT_ID: '${client-id}', AZURE_TENANT_ID: '${tenant-id}' },
    other: { AZURE_AUTHORITY_HOST: '${authority-host}' },
  },
  gcp: {
    tokenVariable: 'GOOGLE_IDENTITY_TOKEN_FILE',
    main: 'service-account',
    settings: [
      {
        name: 'provider',
        form: /^projects\/\d{1,20}\/locations\/global\/workloadIdentityPools\/[a-z0-9-]{4,32}\/providers\/[a-z0-9-]{4,32}$/,
        example: googleProvider,
        needed: true,
      },
      {
        name: 'service-account',
        form: /^[a-z0-9-]{1,63}@[a-z0-9.-]{1,200}\.gserviceaccount\.com$/,
        example: 'cart@shop-prod.iam.gserviceaccount.com',
      },
      { name: 'project', form: /^[a-z][a-z0-9:.-]{1,100}$/, example: 'shop-prod' },
      {
        name: 'token-url',
        form: /^(?:https:\/\/|http:\/\/127\.0\.0\.1:)[^\s"\\]{1,500}$/,
        example: 'https://sts.googleapis.com/v1/token',
        fallback: 'https://sts.googleapis.com/v1/token',
      },
    ],
    identity: {},
    other: { GOOGLE_CLOUD_PROJECT: '${project}', CLOUDSDK_CORE_PROJECT: '${project}' },
    file: {
      name: 'credentials.json',
      variable: 'GOOGLE_APPLICATION_CREDENTIALS',
      needs: ['provider'],
      content: (read) => {
        const account = read('service-account')
        return {
          type: 'external_account',
          audience: `//iam.googleapis.com/${read('provider') ?? ''}`,
          subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
          token_url: read('token-url') ?? '',
          credential_source: { file: read('token_file') ?? '', format: { type: 'text' } },
          ...(account === undefined
            ? {}
            : { service_account_impersonation_url: `${impersonation}/${account}:generateAccessToken` }),
        }
      },
    },
  },
  vault: {
    tokenVariable: 'VAULT_JWT_FILE',
    main: 'role',
    settings: [
      { name: 'role', form: word, example: 'cart' },
      { name: 'address', form: /^https?:\/\/[^\s"\\]{1,500}$/, example: 'https://bao.example.com:8200' },
      { name: 'auth-path', form: /^[\w.-]+(?:\/[\w.-]+)*$/, example: 'jwt', fallback: 'jwt' },
      { name: 'vault-namespace', form: word, example: 'shop' },
    ],
    identity: { VAULT_ROLE: '${role}' },
    // OpenBao reads the names with BAO_ first, then those with VAULT_.
    other: { VAULT_ADDR: '${address}', VAULT_AUTH_PATH: '${auth-path}', VAULT_NAMESPACE: '${vault-namespace}' },
  },
  kubernetes: {
    tokenVariable: 'KUBERNETES_TOKEN_FILE',
    settings: [
      { name: 'server', form: address, example: 'https://api.other.example.com:6443' },
      {
        name: 'certificate-authority',
        form: /^[A-Za-z0-9+/]{100,20000}={0,2}$/,
        example: 'the PEM of its authorities in base64',
      },
      { name: 'default-namespace', form: /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/, example: 'shop' },
    ],
    identity: {},
    other: {},
    file: {
      name: 'kubeconfig',
      variable: 'KUBECONFIG',
      needs: ['server'],
      content: (read) => {
        const authority = read('certificate-authority')
        const namespace = read('default-namespace')
        const cluster = {
          server: read('server') ?? '',
          ...(authority === undefined ? {} : { 'certificate-authority-data': authority }),
        }
        const context = { cluster: 'cluster', user: 'workload', ...(namespace === undefined ? {} : { namespace }) }
        return {
          apiVersion: 'v1',
          kind: 'Config',
          clusters: [{ name: 'cluster', cluster }],
          users: [{ name: 'workload', user: { tokenFile: read('token_file') ?? '' } }],
          contexts: [{ name: 'workload', context }],
          'current-context': 'workload',
        }
      },
    },
  },
  anthropic: { tokenVariable: 'ANTHROPIC_IDENTITY_TOKEN_FILE', settings: [], identity: {}, other: {} },
  spiffe: { tokenVariable: 'JWT_SVID_FILE', settings: [], identity: {}, other: {} },
}

export const presetInjection = (preset: StsPreset): PresetInjection => injections[preset]

/** The provider whose default audience is the token's audience. */
export const providerOf = (audience: string): string | undefined =>
  /^(?:https:)?\/\/iam\.googleapis\.com\/(projects\/.+)$/.exec(audience)?.[1]

/** What a consumer of tokens accepts. */
interface ConsumerLimits {
  readonly algorithms: readonly TokenAlgorithm[]
  /** The longest lifetime it accepts, at most a day. */
  readonly ttlSeconds: number
  /** In bytes; subjects are ASCII everywhere. */
  readonly leastSubject: number
  readonly mostSubject: number
  readonly mostAudience: number
  readonly mostIssuer: number
  /** It rejects an issuer with a port. */
  readonly noPort: boolean
  readonly mostTokenBytes: number
  /** Tokens have a `jti` unless the endpoint says otherwise. */
  readonly jti: boolean
  /** The audience that it accepts by default. */
  readonly usualAudience: string | undefined
}

const hour = 3600
const day = 24 * hour

/** AWS, Anthropic, API servers and JWT-SVID libraries verify RSA and ECDSA only. */
const withoutEdDsa: readonly TokenAlgorithm[] = ['RS256', 'ES256', 'ES384']

/** OpenID Connect Core 2 for the subject; otherwise what all consumers accept. */
const anyConsumer: ConsumerLimits = {
  algorithms: tokenAlgorithms,
  ttlSeconds: hour,
  leastSubject: 1,
  mostSubject: 255,
  mostAudience: 1024,
  mostIssuer: 1024,
  noPort: false,
  mostTokenBytes: 16 * 1024,
  jti: true,
  usualAudience: undefined,
}

const limits: Readonly<Record<StsPreset, ConsumerLimits>> = {
  aws: { ...anyConsumer, algorithms: withoutEdDsa, ttlSeconds: day, leastSubject: 6, mostAudience: 255, noPort: true },
  azure: {
    ...anyConsumer,
    algorithms: ['RS256'],
    ttlSeconds: day,
    mostSubject: 600,
    mostAudience: 600,
    mostIssuer: 600,
    usualAudience: 'api://AzureADTokenExchange',
  },
  gcp: { ...anyConsumer, algorithms: ['RS256', 'ES256'], ttlSeconds: 6 * hour, mostSubject: 127, mostAudience: 256 },
  vault: { ...anyConsumer, ttlSeconds: day },
  kubernetes: { ...anyConsumer, algorithms: withoutEdDsa, ttlSeconds: day },
  // Several processes read a file, and a consumer may accept a `jti` only once.
  anthropic: { ...anyConsumer, algorithms: withoutEdDsa, noPort: true, jti: false },
  spiffe: { ...anyConsumer, algorithms: withoutEdDsa, mostSubject: 2048 },
}

export const consumerLimits = (preset: StsPreset | undefined): ConsumerLimits =>
  preset === undefined ? anyConsumer : limits[preset]
