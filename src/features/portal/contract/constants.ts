/** Values that the portal and the gateway share. They are apart from the schemas, so that the portal does not load Zod. */

/**
 * Paths of the Main API below its mount, which may end in `/main` or be its parent. `wfStart` and `approvalStart`
 * are milliseconds since 1970, as in OpenUnison; all other times are ISO 8601.
 */
export const mainPaths = {
  config: 'config',
  user: 'user',
  orgs: 'orgs',
  /**
   * GET `workflows/org/{orgId}`, GET `workflows/candelegate?workflowName=&uuid=`, GET `workflows/named/{name}`,
   * PUT `workflows`.
   */
  workflows: 'workflows',
  /** GET, PUT (several at once); `approvals/{id}`: GET, PUT. */
  approvals: 'approvals',
  /** GET: what the caller decided. */
  decisions: 'decisions',
  /** GET; `urls/org/{orgId}`: GET. */
  urls: 'urls',
  /** `reports/org/{orgId}`, `reports/{name}` and exports. */
  reports: 'reports',
  /** GET; `requests/{id}`: GET; `requests/{id}/cancel`: POST. */
  requests: 'requests',
  /** GET, POST; `delegations/{id}`: DELETE. */
  delegations: 'delegations',
  /** GET `search?q=&kind=`. */
  search: 'search',
  /** GET; `favorites/{kind}/{name}`: PUT, DELETE. */
  favorites: 'favorites',
  /** POST. */
  recent: 'recent',
  /** GET: server-sent events about what changed. */
  events: 'events',
  /** GET: the caller's own access; `access/{id}/return`: POST. */
  access: 'access',
  /** GET; `notifications/read`: PUT. */
  notifications: 'notifications',
  /** GET; `apis/{name}/{document}`: GET. */
  apis: 'apis',
  /** `admin/incidents`, `admin/runs`, `admin/runs/{id}`, `admin/runs/{id}/{retry|skip|cancel}`. */
  admin: 'admin',
  /** GET `admin/scim-journal`. */
  scimJournal: 'admin/scim-journal',
  /** GET `admin/statistics`. */
  statistics: 'admin/statistics',
  /** GET: the description of the API, as Swagger 2.0. */
  swagger: 'swagger.json',
  /** The same as OpenAPI 3.1. */
  openapi: 'openapi.json',
} as const

/**
 * Paths of the Token API below its mount, which may end in `/token` or be its parent. Both return JSON; failures
 * are `{"errors": [...]}`.
 */
export const tokenPaths = {
  /** GET. */
  config: 'config',
  /** GET reads the tokens and changes nothing; POST issues new tokens, if that is allowed. */
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
