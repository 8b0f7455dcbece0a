/**
 * The arguments and results of plug-in functions: plain data, since it travels between the gateway and the
 * plug-in's process. `gatehouse plugin new` copies this file beside the code, so it imports nothing.
 */

/** Parameters of the YAML by name. All values are lists of texts, even single ones. */
export type PluginConfig = Record<string, string[]>

/** Attributes by name. */
export type PluginAttributes = Record<string, string[]>

/** Writes to the gateway's log. */
export type PluginLog = {
  (message: string, fields?: object): void
  debug(message: string, fields?: object): void
  info(message: string, fields?: object): void
  warn(message: string, fields?: object): void
  error(message: string, fields?: object): void
}

/** Throw it as an Error with this `code`; any other error is not retried. */
export type PluginErrorCode = 'unreachable' | 'conflict' | 'badRequest'

/** A user in the plug-in's system. */
export type PluginUser = {
  userID: string
  attributes: PluginAttributes
  groups: string[]
  /** If the system has its own identifier besides the login. */
  id?: string
  /** If the system has one. */
  version?: string
  /** ISO 8601, in UTC unless the text has an offset; shown by SCIM as `meta.created` and `meta.lastModified`. */
  created?: string
  modified?: string
  /** Passed to `setUserPassword` only. */
  password?: string
}

/** A group in the plug-in's system. */
export type PluginGroup = {
  id: string
  name: string
  description?: string
  members: string[]
  attributes?: PluginAttributes
  version?: string
  /** As those of a user. */
  created?: string
  modified?: string
}

/** A change that the plug-in made. */
export type PluginAuditEntry = {
  /** Default: `attribute`. */
  subject?: 'entry' | 'attribute' | 'group'
  action: 'add' | 'replace' | 'delete'
  attribute: string
  value?: string
}

/** A filter as a tree. Values are plain text: translate the tree, never join a value into a query. */
export type PluginFilter =
  | { kind: 'and' | 'or'; filters: PluginFilter[] }
  | { kind: 'not'; filter: PluginFilter }
  | { kind: 'present'; attribute: string }
  | {
      kind: 'equal' | 'approximate' | 'greaterOrEqual' | 'lessOrEqual' | 'greater' | 'less'
      attribute: string
      value: string
      caseExact?: boolean
    }
  | { kind: 'substring'; attribute: string; initial?: string; any: string[]; final?: string; caseExact?: boolean }

/** The last argument of a target's functions. */
export type PluginTargetRequest = {
  workflow: { id: string; name: string }
  requestor: string
  params: Record<string, unknown>
  /** The same for every attempt of the same step. */
  idempotencyKey: string
  log: PluginLog
  audit(entry: PluginAuditEntry): void
}

/** What a task may change: `doTask` returns true to continue, or false to stop the workflow. */
export type PluginTaskUser = {
  userID: string
  attributes: PluginAttributes
  groups: string[]
  requestReason?: string
}

/** The request map of the run. */
export type PluginTaskRequest = Record<string, unknown>

/** The run that the task belongs to. */
export type PluginTaskContext = {
  workflow: { id: string; name: string }
  requestor: string
  log: PluginLog
  audit(entry: PluginAuditEntry): void
}

/** What a mapper reads. `json` has the attributes that are more than texts, such as those of a SCIM resource. */
export type PluginMappedUser = {
  userID: string
  attributes: PluginAttributes
  groups: string[]
  json: Record<string, unknown>
}

/** A text, texts, or nothing. */
export type PluginMapperAnswer = string | string[] | { values: string[] } | null | undefined

/** The request that a filter or mechanism gets. */
export type PluginRequest = {
  /** In the log and in X-Request-Id. */
  id: string
  method: string
  /** `https://host[:port]` as the client named it. */
  origin: string
  host: string
  /** Percent-encoded, without dot segments. */
  path: string
  query: Record<string, string[]>
  /** Names in lower case. */
  headers: Record<string, string[]>
  remoteAddress: string
  /** Null if it was not requested (`maxBodyKilobytes`), or is not UTF-8. */
  body: string | null
  /** A body that is not UTF-8; else null. */
  bodyBase64: string | null
}

/** The caller. */
export type PluginSubject = {
  dn: string
  uid: string
  attributes: PluginAttributes
  level: number
  chain: string
}

/** The place and caller of a filter's request. */
export type PluginFilterContext = {
  application: string
  /** The mount of the filter: the URL's URI without a trailing slash. */
  mount: string
  /** What follows the mount: empty, or starting with a slash. */
  pathInfo: string
  subject: PluginSubject
  log: PluginLog
}

/** Response headers by name. */
export type PluginHeaders = Record<string, string | string[]>

/** What a filter returns. */
export type PluginFilterAnswer =
  /** The response. At most one of `body`, `json` and `bodyBase64`. */
  | { status: number; headers?: PluginHeaders; body?: string; json?: unknown; bodyBase64?: string }
  /** The next filter answers; these headers are added to its response. */
  | { next: true; headers?: PluginHeaders }

/** The state of the login. */
export type PluginMechanismContext = {
  /** The user that earlier mechanisms of the chain established. */
  subject: PluginSubject | null
  log: PluginLog
}

/** What a mechanism returns. */
export type PluginMechanismAnswer =
  /** The caller is this. */
  | { subject: { uid: string; attributes?: PluginAttributes } }
  /** Refused, with a reason for the log. */
  | {
      refused: string
      /** 403 if the caller is known but may not pass; default 401. */
      status?: 401 | 403
      /** Such as WWW-Authenticate. */
      headers?: Record<string, string>
      /** The request had no credential that could have been accepted. */
      noCredential?: true
    }
