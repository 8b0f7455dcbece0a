import type { UrlConfig } from '#config/configuration/configuration.ts'
import type { Subject } from '#identity/subject.ts'
import { normalizePath } from '#requests/listener/http-request.ts'
import { isOpenPath } from '#requests/pipeline/authenticate.ts'
import type { RuleVerdict } from '#sdk/rule/rule.ts'
import type { Runtime } from '#server/composition/runtime.ts'
import type { Detail, Explanation } from './explanation.ts'

export interface RequestExplanation extends Explanation {
  /** A rule about the caller's name failed, and none passed. */
  readonly deniedByName?: boolean
}

/** `pass` or `fail`, the rule, and why. */
export const verdictText = ({ rule, passed, reason }: RuleVerdict): string =>
  `${passed ? 'pass' : 'fail'}  ${rule.scope} ${rule.constraint}: ${reason}`

/** What the pipeline would do with a request of this caller, in words. Runs no mechanism and no filter. */
export async function explainRequest(
  runtime: Runtime,
  method: string,
  url: URL,
  caller: Subject,
): Promise<RequestExplanation> {
  const host = url.hostname.toLowerCase()
  const path = normalizePath(url.pathname)
  const details: Detail[] = [{ about: 'request', text: `${method} ${host}${path}` }]
  const add = (about: string, text: string, more?: readonly string[]): void => void details.push({ about, text, more })
  const step = runtime.loginRoutes.find(host, path)
  if (step !== undefined) {
    add('login', `a step of logins, at ${step.uri}: answered before any application`)
    return { allowed: true, details }
  }
  const match = runtime.routes.find(host, path)
  if (match === undefined) {
    add('application', 'none: 404', [whatIsServed(runtime, host)])
    return { allowed: false, details }
  }
  const { application, url: found } = match
  const { setAside } = application
  add('application', application.name)
  add('url', `${found.uri} (${found.at})`, setAside && [`is set aside because of ${setAside.reason}`])
  if (setAside !== undefined) {
    add('decision', 'not served: 503')
    return { allowed: false, details }
  }
  if (isOpenPath(match, method, path)) {
    add('open', 'to everybody: no chain and no rule is asked')
    return { allowed: true, details: [...details, ...describeFilters(runtime, application.name, found.at)] }
  }
  const { chain } = found
  if (chain === undefined) {
    add('chain', 'none: the caller is anonymous')
  } else {
    const links = chain.links.map(({ name, required, interactive, uri = '', includes = [] }) => {
      const words = [
        name,
        ...(required ? ['required'] : []),
        ...(interactive === true ? [`asks people at ${uri}`] : []),
      ]
      return [...words, ...includes.map((other) => `hands over to ${other}`)].join(', ')
    })
    add('chain', `${chain.name}, level ${chain.level}`, links)
  }
  if (chain !== undefined && caller.level < chain.level) {
    const asks = chain.links.some(({ interactive, includes = [] }) => interactive === true || includes.length > 0)
    add('caller', `${caller.dn}`, [
      `is below the chain's level and would have to authenticate: 401`,
      ...(asks ? ['a browser that asks for a page is sent to log in instead, and comes back'] : []),
    ])
    return { allowed: false, details }
  }
  add('caller', `${caller.dn}`)
  const verdicts = await runtime.rules.explain(caller, found.rules)
  for (const verdict of verdicts) add('rule', verdictText(verdict))
  if (verdicts.length === 0) add('rule', 'none: denies everyone')
  const allowed = verdicts.some((verdict) => verdict.passed)
  add('decision', allowed ? 'allowed' : 'denied: 403')
  details.push(...describeFilters(runtime, application.name, found.at))
  const redirects = found.results.azSuccess?.some(({ type }) => type === 'redirect') ?? false
  const filters = urlConfig(runtime, application.name, found.at)?.filters ?? []
  if (
    allowed &&
    !redirects &&
    path !== application.cookies?.logoutUri &&
    filters.every(({ answers }) => answers === false)
  ) {
    add('answer', '404: no filter of this URL answers')
  }
  return { allowed, deniedByName: !allowed && verdicts.some(({ rule }) => rule.scope === 'dn'), details }
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

function describeFilters(runtime: Runtime, application: string, at: string): Detail[] {
  return (urlConfig(runtime, application, at)?.filters ?? []).map(({ className, at: place, summary }) => ({
    about: 'filter',
    text: `${className} (${place})`,
    more: summary.map(({ label, value }) => `${label}: ${value}`),
  }))
}
