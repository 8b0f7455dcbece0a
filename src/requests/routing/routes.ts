import type { ClosedReason, CookieConfig, ResultGroupConfig } from '#config/configuration/configuration.ts'
import type { SafePattern } from '#kernel/text/safe-pattern.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { ErrorFormat } from '#sdk/http/error-format.ts'
import type { PageLook } from '#sdk/http/page-look.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import type { Chain } from './chain.ts'

export type ResultActions = ResultGroupConfig['results']

export interface Application {
  readonly name: string
  readonly azTimeoutMillis: number
  readonly cookies: CookieConfig | undefined
  readonly urls: readonly Url[]
  /** Why it is set aside: every request to its URLs fails. */
  readonly setAside?: ClosedReason | undefined
}

/** A URL of an application with everything that a request needs. */
export interface Url {
  /** Where it is configured. */
  readonly at: string
  readonly hosts: readonly string[]
  readonly uri: string
  readonly pattern: SafePattern | undefined
  /** Undefined: the caller stays anonymous. */
  readonly chain: Chain | undefined
  /** Other chains that a filter may request. */
  readonly otherChains?: readonly Chain[] | undefined
  readonly rules: readonly Rule[]
  readonly filters: readonly Filter[]
  readonly errors: ErrorFormat
  /** Changes by cookie may be HTML forms. */
  readonly takesForms: boolean
  /** False: requests here do not count as use of the session. */
  readonly extendsSession?: boolean | undefined
  /** Paths below the mount that everyone may read, without chain and rules. Each begins and ends with a slash. */
  readonly openPaths?: readonly string[] | undefined
  /** What its filters contribute to the look of its hosts' pages. */
  readonly looks?: readonly PageLook[] | undefined
  readonly results: {
    readonly auSuccess: ResultGroupConfig['results'] | undefined
    readonly auFail: ResultGroupConfig['results'] | undefined
    readonly azSuccess: ResultGroupConfig['results'] | undefined
    readonly azFail: ResultGroupConfig['results'] | undefined
  }
}

export interface MatchedUrl {
  readonly url: Url
  readonly application: Application
  /** The part of the path that the URI matched, without a trailing slash. */
  readonly mount: string
}

interface HostRoutes {
  /** By uri without its trailing slash. */
  readonly prefixes: Map<string, MatchedUrl>
  /** The length of the longest of them. */
  longest: number
  readonly patterns: MatchedUrl[]
}

/**
 * Finds the URL for a request: its own host before `*`; within a host the longest URI that is a whole-segment
 * prefix of the path, then regular expressions in configured order. An expression defines its mount by a group of
 * that name.
 */
export class Routes {
  readonly #hosts = new Map<string, HostRoutes>()
  readonly #applications: readonly Application[]
  readonly #looks: ReadonlyMap<string, PageLook>

  constructor(applications: readonly Application[]) {
    this.#applications = applications
    for (const application of applications) {
      for (const url of application.urls) {
        for (const host of url.hosts) this.#add(host, application, url)
      }
    }
    this.#looks = looksOf(applications.flatMap(({ urls }) => urls))
  }

  find(host: string, path: string): MatchedUrl | undefined {
    return this.#findIn(this.#hosts.get(host), path) ?? this.#findIn(this.#hosts.get('*'), path)
  }

  /** Whether there is a URL at that host, at any path. */
  serves(host: string): boolean {
    return this.#hosts.has(host) || this.#hosts.has('*')
  }

  /** How the pages of the host look; undefined if no filter says it. */
  look(host: string): PageLook | undefined {
    return this.#looks.get(host) ?? this.#looks.get('*')
  }

  /** The applications with a URL at that host. */
  at(host: string): readonly Application[] {
    return this.#applications.filter(({ urls }) =>
      urls.some(({ hosts }) => hosts.includes(host) || hosts.includes('*')),
    )
  }

  #add(host: string, application: Application, url: Url): void {
    let routes = this.#hosts.get(host)
    if (routes === undefined) {
      routes = { prefixes: new Map(), longest: 0, patterns: [] }
      this.#hosts.set(host, routes)
    }
    if (url.pattern === undefined) {
      const mount = url.uri.endsWith('/') ? url.uri.slice(0, -1) : url.uri
      if (application.setAside !== undefined && routes.prefixes.has(mount)) return
      routes.prefixes.set(mount, { application, url, mount })
      routes.longest = Math.max(routes.longest, mount.length)
    } else {
      routes.patterns.push({ application, url, mount: '' })
    }
  }

  #findIn(routes: HostRoutes | undefined, path: string): MatchedUrl | undefined {
    if (routes === undefined) return undefined
    let prefix = path.endsWith('/') ? path.slice(0, -1) : path
    // A path of thousands of slashes must not be tried slash by slash.
    if (prefix.length > routes.longest) prefix = prefix.slice(0, prefix.lastIndexOf('/', routes.longest))
    for (;;) {
      const match = routes.prefixes.get(prefix)
      if (match !== undefined) return match
      const slash = prefix.lastIndexOf('/')
      if (slash < 0) break
      prefix = prefix.slice(0, slash)
    }
    const match = routes.patterns.find(({ url }) => url.pattern?.matches(path))
    return match === undefined ? undefined : { ...match, mount: mountOf(match.url, path) }
  }
}

/** By host. The first filter that sets a part of the look wins; a host's own filters win over those of `*`. */
function looksOf(urls: readonly Url[]): ReadonlyMap<string, PageLook> {
  const looks = new Map<string, PageLook>()
  for (const { hosts, looks: given = [] } of urls) {
    for (const look of given) for (const host of hosts) looks.set(host, { ...look, ...looks.get(host) })
  }
  const everywhere = looks.get('*')
  for (const [host, look] of looks) looks.set(host, { ...everywhere, ...look })
  return looks
}

/** The match of the expression's group `mount`, if that is the path's beginning in whole segments. */
function mountOf({ pattern }: Url, path: string): string {
  const mount = pattern?.group(path, 'mount')?.replace(/\/$/, '') ?? ''
  return `${path}/`.startsWith(`${mount}/`) ? mount : ''
}
