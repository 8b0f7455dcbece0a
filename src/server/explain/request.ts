import type { UrlConfig } from '#config/configuration/configuration.ts'
import type { Subject } from '#identity/subject.ts'
import { normalizePath } from '#requests/listener/http-request.ts'
import { isOpenPath } from '#requests/pipeline/authenticate.ts'
import type { Runtime } from '#server/composition/runtime.ts'

export interface Explanation {
  readonly allowed: boolean
  /** A rule about the caller's name failed, and none passed. */
  readonly deniedByName?: boolean
  readonly lines: readonly string[]
}

/** What the pipeline would do with a request of this caller, in words. Runs no mechanism and no filter. */
export async function explainRequest(
  runtime: Runtime,
  method: string,
  url: URL,
  caller: Subject,
): Promise<Explanation> {
  const host = url.hostname.toLowerCase()
  const path = normalizePath(url.pathname)
  const lines = [`request      ${method} ${host}${path}`]
  const step = runtime.loginRoutes.find(host, path)
  if (step !== undefined) {
    lines.push(`login        a step of logins, at ${step.uri}: answered before any application`)
    return { allowed: true, lines }
  }
  const match = runtime.routes.find(host, path)
  if (match === undefined) {
    lines.push('application  none: 404', `             ${whatIsServed(runtime, host)}`)
    return { allowed: false, lines }
  }
  const { application, url: found } = match
  lines.push(`application  ${application.name}`, `url          ${found.uri} (${found.at})`)
  if (application.setAside !== undefined) {
    lines.push(`             is set aside because of ${application.setAside.reason}`, 'decision     not served: 503')
    return { allowed: false, lines }
  }
  if (isOpenPath(match, method, path)) {
    lines.push('open         to everybody: no chain and no rule is asked')
    return { allowed: true, lines: [...lines, ...describeFilters(runtime, application.name, found.at)] }
  }
  const { chain } = found
  if (chain === undefined) {
    lines.push('chain        none: the caller is anonymous')
  } else {
    lines.push(`chain        ${chain.name}, level ${chain.level}`)
    for (const { name, required, interactive, uri = '', includes = [] } of chain.links) {
      const words = [
        name,
        ...(required ? ['required'] : []),
        ...(interactive === true ? [`asks people at ${uri}`] : []),
      ]
      lines.push(`             ${[...words, ...includes.map((other) => `hands over to ${other}`)].join(', ')}`)
    }
  }
  lines.push(`caller       ${caller.dn}`)
  if (chain !== undefined && caller.level < chain.level) {
    const asks = chain.links.some(({ interactive, includes = [] }) => interactive === true || includes.length > 0)
    lines.push(`             is below the chain's level and would have to authenticate: 401`)
    if (asks) lines.push('             a browser that asks for a page is sent to log in instead, and comes back')
    return { allowed: false, lines }
  }
  const verdicts = await runtime.rules.explain(caller, found.rules)
  for (const { rule, passed, reason } of verdicts) {
    lines.push(`rule         ${passed ? 'pass' : 'fail'}  ${rule.scope} ${rule.constraint}: ${reason}`)
  }
  if (verdicts.length === 0) lines.push('rule         none: denies everyone')
  const allowed = verdicts.some((verdict) => verdict.passed)
  lines.push(`decision     ${allowed ? 'allowed' : 'denied: 403'}`)
  lines.push(...describeFilters(runtime, application.name, found.at))
  const redirects = found.results.azSuccess?.some(({ type }) => type === 'redirect') ?? false
  const filters = urlConfig(runtime, application.name, found.at)?.filters ?? []
  if (
    allowed &&
    !redirects &&
    path !== application.cookies?.logoutUri &&
    filters.every(({ answers }) => answers === false)
  ) {
    lines.push('answer       404: no filter of this URL answers')
  }
  return { allowed, deniedByName: !allowed && verdicts.some(({ rule }) => rule.scope === 'dn'), lines }
}

/** The paths of the host, or, for an unknown host, the hosts. */
function whatIsServed(runtime: Runtime, host: string): string {
  const { applications } = runtime.configuration
  const urls = applications.flatMap((app) => (app.setAside === undefined ? app.urls : []))
  const here = urls.filter(({ hosts }) => hosts.includes(host) || hosts.includes('*'))
  const words = (texts: readonly string[]): string => [...new Set(texts)].sort().join(', ') || 'none'
  if (here.length > 0) return `paths that are served on ${host}: ${words(here.map(({ uri }) => uri))}`
  return `hosts that are served: ${words(urls.flatMap(({ hosts }) => hosts))}`
}

const urlConfig = (runtime: Runtime, application: string, at: string): UrlConfig | undefined =>
  runtime.configuration.applications.find((one) => one.name === application)?.urls.find((one) => one.at === at)

function describeFilters(runtime: Runtime, application: string, at: string): string[] {
  return (urlConfig(runtime, application, at)?.filters ?? []).flatMap((filter) => [
    `filter       ${filter.className} (${filter.at})`,
    ...filter.summary.map(({ label, value }) => `             ${label}: ${value}`),
  ])
}
