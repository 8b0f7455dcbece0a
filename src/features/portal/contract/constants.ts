/** Values that the portal and the gateway share. They are apart from the schemas, so that the portal does not load Zod. */

/**
 * Paths of the Token API below its mount, which may end in `/token` or be its parent. Both return JSON; failures
 * are `{"errors": [...]}`.
 */
export const tokenPaths = {
  /** GET. */
  config: 'config',
  /** GET reads the tokens of the session, or issues tokens to a caller without one; POST issues new ones, if that is allowed. */
  user: 'user',
  /** GET: the description of the API, as Swagger 2.0. */
  swagger: 'swagger.json',
  /** The same as OpenAPI 3.1. */
  openapi: 'openapi.json',
} as const

/**
 * The values that the token page shows for Gatehouse's own issuer, by name; users can copy each of them. Other
 * loaders have other names.
 */
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
