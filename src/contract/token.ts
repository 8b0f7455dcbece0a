import type * as schema from './schemas/token.ts'
import type { Wire } from './wire.ts'
/**
 * Paths of the Token API below its mount, which may end in `/token` or stand above it. Both answer JSON; failures are
 * `{"errors": [...]}`.
 */
export const tokenPaths = {
  /** GET. */
  config: 'config',
  /** GET reads what there is and changes nothing; POST makes new tokens, where that is allowed. */
  user: 'user',
  /** GET: the description of the API, as Swagger 2.0. */
  swagger: 'swagger.json',
  /** The same as OpenAPI 3.1. */
  openapi: 'openapi.json',
} as const

/** GET config. */
export type TokenConfig = Wire<typeof schema.tokenConfig>

/** What the token page shows of an own issuer, by name; every one can be copied. Other loaders have names of their own. */
export const kubectlTokenKeys = {
  idToken: 'id_token',
  refreshToken: 'refresh_token',
  usage: 'Usage',
  command: 'kubectl Command',
  windowsCommand: 'kubectl Windows Command',
  loginPlugin: 'ou login plugin',
  clusterCertificate: 'Kubernetes API Server CA Certificate',
  ownCertificate: 'OpenUnison Server CA Certificate',
  /** A whole file, as YAML. */
  kubeconfig: 'kubeconfig',
} as const

/** How it stands with the tokens of a session. */
export type TokenState = Wire<typeof schema.tokenState>

/** GET and POST user. */
export type TokenUser = Wire<typeof schema.tokenUser>

/** The body of every failure. */
export type TokenErrors = Wire<typeof schema.tokenErrors>
