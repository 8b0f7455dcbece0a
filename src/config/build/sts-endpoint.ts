import { buildTokenIssuer, type IssuerPlace, readIssuer } from '#config/build/sts-issuer.ts'
import { buildPodEndpoint } from '#config/build/sts-pod-endpoint.ts'
import type { BuildContext } from '#config/build-context.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Path } from '#kernel/issues.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import type { StsEndpointSpec, StsFrame } from '#model/sts.ts'
import { consumerLimits } from '#model/sts-preset.ts'
import type { StsEndpointConfig } from '#sdk/configuration.ts'
import { type MappingRule, prepareMapping } from '#sdk/mapping.ts'
import type { Rule } from '#sdk/rule.ts'
import type { AwsTags, TokenEndpoint } from '#sdk/token-endpoint.ts'

const kubernetesClass = 'targets.Kubernetes'
/** Audience of the tokens that sidecars bring, unless the configuration names another. */
export const defaultIncomingAudience = 'gatehouse-sts'
const defaultTtlSeconds = 900
const defaultOfflineSeconds = 300
const defaultRate = { burst: 10, perMinute: 30 }
const clusterName = /^[A-Za-z0-9._-]{1,63}$/

/** What a workload has, and so what rules, subjects and claims can read. */
const workloadAttributes: readonly string[] = [
  'namespace',
  'saname',
  'cluster',
  'token_sub',
  'sub',
  'username',
  'uid',
  'groups',
  'pod-name',
  'pod-uid',
  'node-name',
  'node-uid',
  'credential-id',
]
/** In every token already. */
const standingClaims = new Set(['cluster', 'namespace', 'saname'])
const reservedClaims = new Set(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'azp', ...standingClaims])

export interface BuiltEndpoint {
  readonly config: StsEndpointConfig
  readonly issuer: IssuerPlace
}

export function buildStsEndpoint(
  spec: StsEndpointSpec,
  frame: StsFrame,
  at: Path,
  context: BuildContext,
): BuiltEndpoint {
  const issuer = readIssuer(spec, at, context)
  checkConsumer(spec, at, context)
  const rules = readRules(spec, at, context)
  const claimRules = readClaims(spec, at, context)
  const endpoint = buildEndpoint(spec, frame, issuer.url, at, context)
  const { algorithm, ttlSeconds } = endpoint
  const claims = claimRules.map(({ attribute }) => attribute)
  const parts = { spec, frame, issuer: issuer.url, algorithm, ttlSeconds, claims }
  return {
    issuer,
    config: {
      at: context.at(at),
      spec,
      rules,
      endpoint,
      issuer: buildTokenIssuer(parts, at, context),
      claims: prepareMapping(claimRules, context.issues, context),
      pods: buildPodEndpoint(spec, endpoint.incomingAudience, at, context),
    },
  }
}

function buildEndpoint(
  spec: StsEndpointSpec,
  frame: StsFrame,
  issuer: string,
  at: Path,
  context: BuildContext,
): TokenEndpoint {
  const limits = consumerLimits(spec.preset)
  const offline = spec.whenApiServerIsAway === 'offline-ok'
  if (spec.offlineSeconds !== undefined && !offline) {
    context.issues.error([...at, 'offlineSeconds'], 'counts only where whenApiServerIsAway is "offline-ok"')
  }
  return {
    name: spec.name,
    audience: spec.audience,
    issuer,
    preset: spec.preset,
    algorithm: spec.algorithm ?? 'RS256',
    ttlSeconds: spec.ttlSeconds ?? defaultTtlSeconds,
    jti: spec.jti ?? limits.jti,
    subject: readTemplate(spec.subject ?? '${token_sub}', [...at, 'subject'], context),
    clusters: readClusters(spec, at, context),
    incomingAudience: spec.incomingAudience ?? frame.incomingAudience ?? defaultIncomingAudience,
    acceptApiServerAudience: spec.acceptApiServerAudience ?? false,
    acceptTokensWithoutPod: spec.acceptTokensWithoutPod ?? false,
    offlineSeconds: offline ? (spec.offlineSeconds ?? defaultOfflineSeconds) : 0,
    rateLimit: {
      burst: spec.rateLimit?.burst ?? defaultRate.burst,
      perMinute: spec.rateLimit?.perMinute ?? defaultRate.perMinute,
    },
    awsTags: readAwsTags(spec, at, context),
    awsRoles: spec.awsRoles ?? [],
  }
}

/** What the consumer would refuse is refused here, where it can be mended. */
function checkConsumer(spec: StsEndpointSpec, at: Path, { issues }: BuildContext): void {
  const limits = consumerLimits(spec.preset)
  const consumer = spec.preset ?? 'an endpoint without a preset'
  if (spec.algorithm !== undefined && !limits.algorithms.includes(spec.algorithm)) {
    issues.error([...at, 'algorithm'], `${consumer} takes ${limits.algorithms.join(' and ')} only`)
  }
  if ((spec.ttlSeconds ?? 0) > limits.ttlSeconds) {
    issues.error([...at, 'ttlSeconds'], `${consumer} takes at most ${limits.ttlSeconds} seconds`)
  }
  if (spec.audience.length > limits.mostAudience) {
    issues.error([...at, 'audience'], `${consumer} takes at most ${limits.mostAudience} characters`)
  }
  if (limits.usualAudience !== undefined && spec.audience !== limits.usualAudience) {
    issues.warning([...at, 'audience'], `${consumer} expects "${limits.usualAudience}" unless it is told otherwise`)
  }
  for (const name of ['awsTags', 'awsRoles'] as const) {
    if (spec[name] !== undefined && spec.preset !== 'aws') issues.error([...at, name], 'belongs to the preset "aws"')
  }
  for (const [i, role] of (spec.awsRoles ?? []).entries()) {
    if (!/^arn:[a-z-]+:iam::\d{12}:role\/[\w+=,.@/-]+$/.test(role)) {
      issues.error([...at, 'awsRoles', i], `"${role}" is not the name of a role: it must be an exact ARN, without "*"`)
    }
  }
}

function readRules(spec: StsEndpointSpec, at: Path, context: BuildContext): Rule[] {
  const place = [...at, 'azRules']
  if ((spec.azRules ?? []).length === 0) {
    context.issues.error(place, 'no rule would deny everyone: say who may have tokens')
  }
  const rules = context.rules(spec.azRules, place)
  for (const [i, rule] of rules.entries()) {
    if (rules.length !== spec.azRules?.length) break
    const here = [...place, i, 'constraint']
    if (rule.scope === 'dn' && rule.dn.rdns.length <= 1) {
      context.issues.warning(here, 'this lets every service account of every cluster have a token')
    }
    for (const name of rule.scope === 'filter' ? attributesIn(rule.filter) : []) {
      if (isWorkloadAttribute(name)) continue
      const hint = suggestion(name, workloadAttributes)
      context.issues.warning(here, `service accounts have no attribute "${name}"${hint}, so this never matches`)
    }
  }
  return rules
}

function attributesIn(filter: Filter): string[] {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.flatMap(attributesIn)
    case 'not':
      return attributesIn(filter.filter)
    default:
      return [filter.attribute]
  }
}

const isWorkloadAttribute = (name: string): boolean => workloadAttributes.includes(name.toLowerCase())

function readClaims(spec: StsEndpointSpec, at: Path, { issues }: BuildContext): MappingRule[] {
  return (spec.additionalAttributes ?? []).flatMap((entry, i): MappingRule[] => {
    const path = [...at, 'additionalAttributes', i]
    const rule = typeof entry === 'string' ? shortForm(entry, path) : { ...entry, attribute: entry.name, path }
    const { attribute, sourceType, source } = rule
    if (sourceType === 'user' && source === attribute && standingClaims.has(attribute)) return []
    if (reservedClaims.has(attribute) || attribute.startsWith('https://aws.amazon.com/') || isForbiddenKey(attribute)) {
      issues.error(path, `the claim "${attribute}" cannot be made from an attribute`)
      return []
    }
    if (sourceType === 'user' && !isWorkloadAttribute(source)) {
      const hint = suggestion(source, workloadAttributes)
      issues.error(path, `service accounts have no attribute "${source}"${hint}`)
      return []
    }
    return [{ attribute, sourceType, source, path }]
  })
}

function shortForm(text: string, path: Path): MappingRule {
  const equals = text.indexOf('=')
  const attribute = equals < 0 ? text : text.slice(0, equals)
  return { attribute, sourceType: 'user', source: equals < 0 ? text : text.slice(equals + 1), path }
}

function readTemplate(text: string, path: Path, { issues }: BuildContext): Template {
  const template = parseTemplate(text, { keys: false, attributes: true })
  for (const name of template.attributes) {
    if (isWorkloadAttribute(name)) continue
    issues.error(path, `service accounts have no attribute "${name}"${suggestion(name, workloadAttributes)}`)
  }
  return template
}

function readAwsTags(spec: StsEndpointSpec, at: Path, context: BuildContext): AwsTags | undefined {
  if (spec.awsTags === undefined) return undefined
  const path = [...at, 'awsTags']
  const { principal, transitive = [] } = spec.awsTags
  const tags = new Map<string, Template>()
  for (const [name, value] of Object.entries(principal)) {
    if (isForbiddenKey(name)) context.issues.error([...path, 'principal', name], `"${name}" cannot be a tag`)
    else tags.set(name, readTemplate(value, [...path, 'principal', name], context))
  }
  if (tags.size > 50) context.issues.error([...path, 'principal'], 'a session has at most 50 tags')
  for (const [i, name] of transitive.entries()) {
    if (!tags.has(name)) context.issues.error([...path, 'transitive', i], `no principal tag is named "${name}"`)
  }
  return { principal: tags, transitive }
}

function readClusters(spec: StsEndpointSpec, at: Path, context: BuildContext): readonly string[] {
  const { issues } = context
  const targets = [...context.state.draft.targets.values()].map(({ config }) => config)
  const found = targets.filter(({ target }) => target.className === kubernetesClass).map(({ name }) => name)
  const path = [...at, 'clusters']
  if (spec.clusters === undefined && found.length !== 1) {
    const have = found.length === 0 ? 'there is none' : `there are ${found.join(', ')}`
    issues.error(path, `is required unless there is exactly one target of class ${kubernetesClass}; ${have}`)
  }
  for (const [i, name] of (spec.clusters ?? []).entries()) {
    context.refer('target', name, [...path, i])
    if (targets.some((target) => target.name === name) && !found.includes(name)) {
      issues.error([...path, i], `the target "${name}" is no cluster (class ${kubernetesClass})`)
    }
  }
  const clusters = spec.clusters ?? found
  for (const [i, name] of clusters.entries()) {
    if (!clusterName.test(name)) {
      issues.error(
        spec.clusters === undefined ? path : [...path, i],
        `"${name}" cannot stand in a subject as a cluster`,
      )
    }
  }
  return clusters
}
