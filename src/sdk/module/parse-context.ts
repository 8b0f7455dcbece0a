import type { Issues, Path } from '#kernel/issues.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ResourceType } from '#sdk/module/resource-type.ts'
import type { GroupSource } from '#sdk/target/group-mappings.ts'
import type { MapperInstance, PreparedValueSource } from '#sdk/target/mapper.ts'

/** Kinds of objects that a parameter can name. */
export type ReferenceKind =
  | 'application'
  | 'chain'
  | 'mechanism'
  | 'workflow'
  | 'target'
  | 'org'
  | 'resource type'
  | 'result group'
  | 'custom authorization'
  /** A Notifier for mails to users. */
  | 'notifier'
  /** A Notifier for messages to a channel. */
  | 'channel notifier'
  | 'trust'
  | 'key'
  | 'javascript mapping'
  | 'token endpoint'
  /** By issuer and audience. */
  | 'endpoint of the token service'
  | 'identity provider'
  | 'trust of an identity provider'
  /** A filter that mails links to set a password: that of the application with the name, or else the only one. */
  | 'password page'

/** A value of `#[NAME]`. `secret`: it is, or looks like, a secret, and must not be shown. */
export type ShownValue =
  | { readonly kind: 'value'; readonly text: string }
  | { readonly kind: 'secret' }
  | { readonly kind: 'absent' }

/** What a pure parse may use of the configuration around it. */
export interface ParseContext {
  /**
   * Records that the value at `path` names another object. Missing names are reported after everything is read: as
   * an error, or as a warning if the feature is optional.
   */
  refer(kind: ReferenceKind, name: string, path: Path, absent?: 'error' | 'warning'): void
  /** A mapper from its expression `class|p1,p2`; undefined, with an issue filed, if it is invalid. */
  mapper(expression: string, path: Path, issues: Issues): MapperInstance | undefined
  /** A value source by its class name; undefined, with an issue filed, if it is invalid. */
  valueSource?(className: string, params: Params, path: Path, issues: Issues): PreparedValueSource | undefined
  /** The chain of the URL of an application that serves this path; undefined if there is none. */
  chainAt?(address: string): string | undefined
  /** The value of `#[NAME]` for a place where users may see it. */
  shownValue?(name: string): ShownValue
  /** The `init` of the first mechanism of this class; undefined if there is none. */
  initOf?(className: string): Params | undefined
  /** The ResourceType of this name; undefined if there is none, or if it has errors, which are reported elsewhere. */
  resourceType?(name: string): ResourceType | undefined
  /** Group mappings are also read from the objects of this cluster. */
  addGroupSource?(source: GroupSource): void
  /** A rule is true for members of a group of this name. */
  addGroupName?(name: string, path: Path): void
  /** The configuration folder, the base of module paths. */
  readonly folder: string
  /** The text of a file that the configuration names, or its bytes in base64, if there are files; throws if it can't be read. */
  readFile?(file: string, encoding?: 'utf8' | 'base64'): string
  /** Counts a script, with what it uses and isn't served; undefined for one that isn't JavaScript. */
  countScript?(unserved: readonly string[] | undefined): void
  /** The gateway's own file or folder that a path leads to, relative to the data folder; undefined for all others. */
  ownFile?(path: string): string | undefined
}
