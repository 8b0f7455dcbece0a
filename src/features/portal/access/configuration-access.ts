import type { Dn } from '#identity/dn.ts'

/** The loaded configuration, for administrators: its places and problems, never its values. */
export interface ConfigurationAccess {
  describe(): ConfigurationFacts
  /** Why a request of this caller would be allowed or denied, in words. Runs no mechanism and no filter. */
  explain(method: string, url: URL, caller: DescribedCaller): Promise<RequestExplanation>
}

export interface ConfigurationFacts {
  readonly running: { readonly hash: string; readonly since: Date }
  /** The latest time that the configuration was read or tried to. */
  readonly latest: {
    /** `refused` because of errors; `failed` without any; `unread`: the source could not be read. */
    readonly outcome: 'applied' | 'refused' | 'failed' | 'unread'
    readonly time: Date
  }
  /** Of the latest configuration that could be read. */
  readonly problems: readonly ConfigurationProblem[]
  /** By place. */
  readonly objects: readonly ConfigurationObject[]
}

export interface ConfigurationProblem {
  readonly level: 'error' | 'warning'
  readonly file: string
  /** Absent for an object of a cluster. */
  readonly line?: number
  readonly column?: number
  /** Such as `spec.urls[0].uri`; empty for a whole document. */
  readonly path: string
  readonly message: string
}

export interface ConfigurationObject {
  readonly kind: string
  readonly name?: string
  readonly file: string
  readonly line?: number
  /** Whether it is part of the running configuration. */
  readonly loaded: boolean
  /** Why the running configuration does not serve it, in words. */
  readonly setAside?: string
  /** The error that `setAside` is about; it may be that of another object. */
  readonly cause?: SetAsideCause
  /** Problems in the latest configuration that could be read. */
  readonly errors: number
  readonly warnings: number
}

/** Why objects are set aside. */
export interface SetAsideCause {
  /** The object that has the error: `Target "k8s"`, or `target "k8s"` if nothing has the name. */
  readonly object: string
  /** Where the error is; absent if nothing has the name. */
  readonly at?: string
  readonly message: string
}

/** Anonymous if it is empty. */
export interface DescribedCaller {
  /** Names and values of attributes or claims. */
  readonly attributes: ReadonlyMap<string, readonly string[]>
  /** The name of the caller; derived from the attributes if absent. */
  readonly dn?: Dn | undefined
  /** The level of the login; enough for every chain if absent. */
  readonly level?: number | undefined
}

export interface RequestExplanation {
  readonly allowed: boolean
  readonly lines: readonly string[]
}
