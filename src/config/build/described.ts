import type { BuildContext } from '#config/build-context.ts'
import type { JavaScriptMappingSpec } from '#model/javascript-mapping.ts'
import type { OrgSpec } from '#model/org.ts'
import type { PortalUrlSpec } from '#model/portal-url.ts'
import type { ReportSpec } from '#model/report.ts'
import type { TrustSpec } from '#model/trust.ts'
import { checkScript } from '#sdk/legacy-script/legacy-script.ts'
import { mappingSignatures } from '#sdk/legacy-script/legacy-signatures.ts'

/** Kinds that are read, checked and handed on as they are written. */

export function buildJavaScriptMapping(spec: JavaScriptMappingSpec, context: BuildContext): void {
  try {
    for (const { level, message } of checkScript(spec.javascript, mappingSignatures).findings) {
      context.issues[level](['spec', 'javascript'], message)
    }
  } catch (error) {
    context.issues.error(['spec', 'javascript'], error instanceof Error ? error.message : String(error))
  }
  context.state.draft.javaScriptMappings.set(context.placed.name, spec.javascript)
}

export function buildTrust(spec: TrustSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  context.optional('chain', spec.authChainName, ['spec', 'authChainName'])
  for (const [i, uri] of spec.redirectURI.entries()) {
    if (uri === '*') issues.error(['spec', 'redirectURI', i], 'a bare "*" would accept any site')
  }
  if (spec.clientSecret === undefined && spec.publicEndpoint !== true) {
    issues.error(['spec', 'clientSecret'], 'is required unless publicEndpoint is true')
  }
  state.draft.trusts.set(placed.name, { ...placed, spec })
}

export function buildOrg(spec: OrgSpec, context: BuildContext): void {
  const { state, document, placed } = context
  context.rules(spec.azRules, ['spec', 'azRules'])
  if (spec.parent !== spec.uuid) context.optional('org', spec.parent, ['spec', 'parent'])
  state.draft.orgs.set(placed.name, { config: { ...placed, spec }, document })
}

export function buildPortalUrl(spec: PortalUrlSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  context.optional('org', spec.org, ['spec', 'org'])
  context.rules(spec.azRules, ['spec', 'azRules'])
  if (!URL.canParse(spec.url) || !/^https?:/.test(spec.url)) {
    issues.error(['spec', 'url'], `"${spec.url}" is not a web address`)
  }
  state.draft.portalUrls.set(placed.name, { ...placed, spec })
}

export function buildReport(spec: ReportSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  context.optional('org', spec.orgId, ['spec', 'orgId'])
  if (spec.groupings === true && (spec.groupBy ?? '') === '') {
    issues.error(['spec', 'groupBy'], 'is required where groupings is true')
  }
  state.draft.reports.set(placed.name, { ...placed, spec })
}
