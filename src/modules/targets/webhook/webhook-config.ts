import type { JsonPath } from '#kernel/json-path.ts'
import type { Operations } from './operation.ts'
import type { RequestTemplate } from './request-template.ts'

/** Where the parts of a user or group stand in what the API answers. */
export interface EntryPaths {
  /** The login of a user, the name of a group. */
  readonly name: JsonPath
  readonly id: JsonPath | undefined
  readonly version: JsonPath | undefined
  readonly created: JsonPath | undefined
  readonly modified: JsonPath | undefined
  /** A user's groups, a group's members. */
  readonly links: JsonPath | undefined
  readonly attributes: ReadonlyMap<string, JsonPath>
  /** Attributes, in small letters, that are the name itself under another name. */
  readonly aliases: ReadonlySet<string>
}

export type Authority = { readonly file: string } | { readonly pem: string } | undefined

export interface Signing {
  readonly secret: string
  readonly signatureHeader: string
  readonly timestampHeader: string
}

export interface ConnectionConfig {
  readonly url: URL
  readonly authority: Authority
  /** Who we are, and what else every request says. */
  readonly headers: readonly (readonly [string, string])[]
  readonly signing: Signing | undefined
  readonly connections: number
  readonly timeoutMillis: number
  readonly retries: number
  readonly idempotencyKeys: boolean
  readonly maxAnswerBytes: number
}

export interface ListLimits {
  readonly pageSize: number
  readonly firstPage: number
  readonly maxEntries: number
}

/** Requests that narrow a search, by the attribute in small letters. */
export type Narrowings = ReadonlyMap<string, RequestTemplate>

export interface WebhookConfig {
  readonly connection: ConnectionConfig
  readonly limits: ListLimits
  readonly user: EntryPaths
  readonly group: EntryPaths
  readonly membersAreIds: boolean
  readonly operations: Operations
  readonly usersBy: Narrowings
  readonly groupsBy: Narrowings
  readonly can: Capabilities
}

export interface Capabilities {
  readonly lookups: boolean
  readonly groups: boolean
  readonly renames: boolean
  readonly versions: boolean
  /** How memberships are changed: with the user itself, one by one, or not at all. */
  readonly memberships: 'body' | 'calls' | 'none'
}
