import type { JsonObject } from '#kernel/json.ts'
import type { Rule } from '#sdk/rule/rule.ts'

/** Where an API is, as its documents say. */
export interface ApiPlace {
  /** `https://host` */
  readonly origin: string
  /** The base path of the document; empty for the host itself. */
  readonly base: string
  /** The path of the API below it, such as `/register`. */
  readonly prefix: string
}

export type ApiFormat = 'openapi' | 'swagger'

/** Writes the documents of an API: `openApi` in version 3.1, `swagger` in version 2.0. */
export interface ApiDocuments {
  openApi(place: ApiPlace): JsonObject
  swagger(place: ApiPlace): JsonObject
}

/** The HTTP API of a filter. */
export interface FilterApi {
  readonly title: string
  readonly formats: readonly ApiFormat[]
  /** The API checks credentials of its own, whatever the chain of its URL accepts. */
  readonly hasOwnCredentials: boolean
  /** The application whose session is the credential, in place of what the chain of the URL accepts. */
  readonly sessionOf?: string | undefined
  /** Where the API is, if its URL has this mount. */
  place(mount: string): Pick<ApiPlace, 'base' | 'prefix'>
  /** For administrators of the portal. */
  readonly documents: ApiDocuments
  /** For other users that the rules of the URL admit. Absent: only administrators know of the API. */
  readonly userDocuments?: ApiDocuments | undefined
}

/** An API of the running configuration. */
export interface ServedApi {
  /** Unique, and fit for an address. */
  readonly name: string
  readonly application: string
  /** Lower case; `*` is every host. */
  readonly hosts: readonly string[]
  /** The path of its URL, without a trailing slash. */
  readonly mount: string
  readonly rules: readonly Rule[]
  /** The credentials that its chain accepts. Empty: it needs none. Undefined: the configuration doesn't show it. */
  readonly credentials: readonly ApiCredential[] | undefined
  readonly api: FilterApi
}

export type ApiCredential = { readonly kind: 'bearer' } | { readonly kind: 'session'; readonly cookie: string }
