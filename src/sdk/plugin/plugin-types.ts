/**
 * What the functions of plug-ins are given and what they answer: plain data, since it travels between the gateway and
 * the plug-in's process. `gatehouse plugin new` puts a copy of this file beside the code, so it imports nothing.
 */

/** Parameters of the YAML by name. All values are texts in lists, also single ones. */
export type PluginConfig = Record<string, string[]>

export type PluginAttributes = Record<string, string[]>

/** Writes to the gateway's log. */
export type PluginLog = {
  (message: string, fields?: object): void
  debug(message: string, fields?: object): void
  info(message: string, fields?: object): void
  warn(message: string, fields?: object): void
  error(message: string, fields?: object): void
}

/** Throw it as an Error with this `code`; any other error is one that a retry does not mend. */
export type PluginErrorCode = 'unreachable' | 'conflict' | 'badRequest'

export type PluginUser = {
  userID: string
  attributes: PluginAttributes
  groups: string[]
  /** Where the system has an identifier of its own beside the login. */
  id?: string
  /** Where the system keeps one. */
  version?: string
  /** ISO 8601, in UTC unless the text has an offset; shown by SCIM as `meta.created` and `meta.lastModified`. */
  created?: string
  modified?: string
  /** Given to `setUserPassword` only. */
  password?: string
}

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

export type PluginAuditEntry = {
  /** `attribute` when absent. */
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

/** What a function of a target is given last. */
export type PluginTargetRequest = {
  workflow: { id: string; name: string }
  requestor: string
  params: Record<string, unknown>
  /** The same for every attempt of the same step. */
  idempotencyKey: string
  log: PluginLog
  audit(entry: PluginAuditEntry): void
}

/** What a task may change: `doTask` answers true to go on, or false to stop the workflow. */
export type PluginTaskUser = {
  userID: string
  attributes: PluginAttributes
  groups: string[]
  requestReason?: string
}

export type PluginTaskRequest = Record<string, unknown>

export type PluginTaskContext = {
  workflow: { id: string; name: string }
  requestor: string
  log: PluginLog
  audit(entry: PluginAuditEntry): void
}

/** What a mapper reads. `json` holds the attributes that are more than texts, such as those of a SCIM resource. */
export type PluginMappedUser = {
  userID: string
  attributes: PluginAttributes
  groups: string[]
  json: Record<string, unknown>
}

/** A text, texts, or nothing. */
export type PluginMapperAnswer = string | string[] | { values: string[] } | null | undefined

export type PluginRequest = {
  /** Stands in the log and in X-Request-Id. */
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
  /** Null when it was not asked for (`maxBodyKilobytes`), or is not UTF-8. */
  body: string | null
  /** A body that is not UTF-8; else null. */
  bodyBase64: string | null
}

/** Who calls. */
export type PluginSubject = {
  dn: string
  uid: string
  attributes: PluginAttributes
  level: number
  chain: string
}

export type PluginFilterContext = {
  application: string
  /** Where the filter is mounted: the URL's uri without a trailing slash. */
  mount: string
  /** What follows the mount: empty, or starting with a slash. */
  pathInfo: string
  subject: PluginSubject
  log: PluginLog
}

export type PluginHeaders = Record<string, string | string[]>

export type PluginFilterAnswer =
  /** The answer. At most one of `body`, `json` and `bodyBase64`. */
  | { status: number; headers?: PluginHeaders; body?: string; json?: unknown; bodyBase64?: string }
  /** The next filter answers; these headers are put on its answer. */
  | { next: true; headers?: PluginHeaders }

export type PluginMechanismContext = {
  /** Whom earlier mechanisms of the chain established. */
  subject: PluginSubject | null
  log: PluginLog
}

export type PluginMechanismAnswer =
  /** The caller is this. */
  | { subject: { uid: string; attributes?: PluginAttributes } }
  /** Refused, for a reason that stands in the log. */
  | {
      refused: string
      /** 403 where the caller is known but may not pass; 401 when absent. */
      status?: 401 | 403
      /** Such as WWW-Authenticate. */
      headers?: Record<string, string>
      /** Nothing was sent that could have been accepted. */
      noCredential?: true
    }
