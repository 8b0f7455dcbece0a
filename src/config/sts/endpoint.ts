import type { StsEndpointConfig } from '#config/configuration/configuration.ts'
import type { AwsTags, GrantLimits, SubjectIssuer, TokenEndpoint } from '#config/configuration/token-endpoint.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import type { StsEndpointSpec, StsFrame } from '#config/kinds/sts.ts'
import { consumerLimits } from '#config/kinds/sts-preset.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Path } from '#kernel/issues.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import { type MappingRule, prepareMapping } from '#sdk/mapper/mapping.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { buildTokenIssuer, type IssuerPlace, readIssuer } from './issuer.ts'
import { buildPodEndpoint } from './pod-endpoint.ts'
import { checkSubject, subjectText } from './subject-template.ts'
import { readSubjects, type Subjects, unknownAttribute } from './subjects.ts'

/** The audience of sidecars' tokens, unless the configuration names another. */
const defaultIncomingAudience = 'gatehouse-sts'
const defaultTtlSeconds = 900
const defaultOfflineSeconds = 300
const defaultRate = { burst: 10, perMinute: 30 }

/** Claims that every token already has. */
const fixedAccountClaims = new Set(['cluster', 'namespace', 'saname'])
const reservedClaims = new Set(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'azp', ...fixedAccountClaims])

export interface BuiltEndpoint {
  readonly config: StsEndpointConfig
  readonly issuer: IssuerPlace
}

export function buildStsEndpoint(
  spec: StsEndpointSpec,
  frame: StsFrame,
  issuers: ReadonlyMap<string, SubjectIssuer>,
  at: Path,
  context: BuildContext,
): BuiltEndpoint {
  const issuer = readIssuer(spec, at, context)
  checkConsumer(spec, at, context)
  const subjects = readSubjects(spec, issuers, at, context)
  const rules = readRules(spec, subjects, at, context)
  checkSubject(spec, subjects, rules, at, context)
  const claimRules = readClaims(spec, subjects, at, context)
  const endpoint = buildEndpoint(spec, frame, issuer.url, subjects, at, context)
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
      pods: buildPodEndpoint(spec, endpoint.incomingAudience, subjects.clusters, at, context),
    },
  }
}

function buildEndpoint(
  spec: StsEndpointSpec,
  frame: StsFrame,
  issuer: string,
  subjects: Subjects,
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
    subject: readTemplate(subjectText(spec), subjects, [...at, 'subject'], context),
    clusters: subjects.clusters,
    subjectIssuers: subjects.issuers,
    incomingAudience: spec.incomingAudience ?? frame.incomingAudience ?? defaultIncomingAudience,
    acceptApiServerAudience: spec.acceptApiServerAudience ?? false,
    acceptTokensWithoutPod: spec.acceptTokensWithoutPod ?? false,
    offlineSeconds: offline ? (spec.offlineSeconds ?? defaultOfflineSeconds) : 0,
    rateLimit: {
      burst: spec.rateLimit?.burst ?? defaultRate.burst,
      perMinute: spec.rateLimit?.perMinute ?? defaultRate.perMinute,
    },
    grants: readGrants(spec, subjects, at, context),
    awsTags: readAwsTags(spec, subjects, at, context),
    awsRoles: spec.awsRoles ?? [],
  }
}

/** Rejects here, where it can be fixed, what the consumer would reject. */
function checkConsumer(spec: StsEndpointSpec, at: Path, { issues }: BuildContext): void {
  const limits = consumerLimits(spec.preset)
  const consumer = spec.preset ?? 'an endpoint without a preset'
  if (spec.algorithm !== undefined && !limits.algorithms.includes(spec.algorithm)) {
    issues.error([...at, 'algorithm'], `${consumer} takes ${limits.algorithms.join(', ')} only`)
  }
  if ((spec.ttlSeconds ?? 0) > limits.ttlSeconds) {
    issues.error([...at, 'ttlSeconds'], `${consumer} takes at most ${limits.ttlSeconds} seconds`)
  }
  if (spec.audience.length > limits.mostAudience) {
    issues.error([...at, 'audience'], `${consumer} takes at most ${limits.mostAudience} characters`)
  }
  if (limits.usualAudience !== undefined && spec.audience !== limits.usualAudience) {
    issues.warning(
      [...at, 'audience'],
      `${consumer} expects "${limits.usualAudience}" unless it is configured for another audience`,
    )
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

function readRules(spec: StsEndpointSpec, subjects: Subjects, at: Path, context: BuildContext): Rule[] {
  const place = [...at, 'azRules']
  if ((spec.azRules ?? []).length === 0 && spec.grants === undefined) {
    context.issues.error(place, 'at least one rule, or grants, is required: without them, every workload is denied')
  }
  const rules = context.rules(spec.azRules, place)
  for (const [i, rule] of rules.entries()) {
    if (rules.length !== spec.azRules?.length) break
    const here = [...place, i, 'constraint']
    if (rule.scope === 'dn' && rule.dn.rdns.length <= 1) {
      const everyone = subjects.areAccounts
        ? 'every service account of every cluster'
        : `every subject of ${subjects.issuers.map(({ name }) => name).join(' and ')}`
      context.issues.warning(here, `this lets ${everyone} have a token`)
    }
    if (rule.scope !== 'filter') continue
    const names = attributesIn(rule.filter)
    for (const name of names) {
      const problem = unknownAttribute(name, subjects)
      if (problem !== undefined) context.issues.warning(here, `${problem}, so this never matches`)
    }
    const says = new Set(names.map((name) => name.toLowerCase()))
    if (!subjects.areAccounts && subjects.issuers.length > 1 && !says.has('issuer') && !says.has('token_sub')) {
      const example = `(issuer=${subjects.issuers[0]?.name})`
      context.issues.warning(here, `the rule holds for each issuer alike: add a clause such as ${example}`)
    }
  }
  return rules
}

const defaultGrants = { maxServiceAccounts: 10, maxGrants: 10, staleSeconds: 300 }

function readGrants(
  { grants }: StsEndpointSpec,
  { clusters, areAccounts }: Subjects,
  at: Path,
  { issues }: BuildContext,
): GrantLimits | undefined {
  if (grants === undefined) return undefined
  const path = [...at, 'grants']
  const { namespaces = [], namespaceLabels = {}, serviceAccounts = [] } = grants
  const labels = new Map(Object.entries(namespaceLabels))
  if (namespaces.length === 0 && labels.size === 0) {
    issues.error(path, 'namespaces or namespaceLabels are required: they say which namespaces may have grants')
  }
  const everywhere = labels.size === 0 ? namespaces.indexOf('*') : -1
  if (everywhere >= 0) {
    const warning = 'any user who may create a TokenGrant, in any namespace, can give its service accounts a token'
    issues.warning([...path, 'namespaces', everywhere], warning)
  }
  if (!areAccounts || clusters.length === 0) {
    issues.error(path, 'belongs to endpoints with clusters: grants are objects of a cluster')
  }
  return {
    namespaces,
    namespaceLabels: labels,
    serviceAccounts,
    maxServiceAccounts: grants.maxServiceAccounts ?? defaultGrants.maxServiceAccounts,
    maxGrants: grants.maxGrants ?? defaultGrants.maxGrants,
    staleSeconds: grants.staleSeconds ?? defaultGrants.staleSeconds,
  }
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

function readClaims(spec: StsEndpointSpec, subjects: Subjects, at: Path, { issues }: BuildContext): MappingRule[] {
  return (spec.additionalAttributes ?? []).flatMap((entry, i): MappingRule[] => {
    const path = [...at, 'additionalAttributes', i]
    const rule = typeof entry === 'string' ? shortForm(entry, path) : { ...entry, attribute: entry.name, path }
    const { attribute, sourceType, source } = rule
    const isFixedClaim = subjects.areAccounts && fixedAccountClaims.has(attribute)
    if (sourceType === 'user' && source === attribute && isFixedClaim) return []
    if (reservedClaims.has(attribute) || attribute.startsWith('https://aws.amazon.com/') || isForbiddenKey(attribute)) {
      issues.error(path, `the claim "${attribute}" cannot be made from an attribute`)
      return []
    }
    const unknown = sourceType === 'user' ? unknownAttribute(source, subjects) : undefined
    if (unknown !== undefined) {
      issues.error(path, unknown)
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

function readTemplate(text: string, subjects: Subjects, path: Path, { issues }: BuildContext): Template {
  const template = parseTemplate(text, { keys: false, attributes: true })
  for (const name of template.attributes) {
    const problem = unknownAttribute(name, subjects)
    if (problem !== undefined) issues.error(path, problem)
  }
  return template
}

function readAwsTags(spec: StsEndpointSpec, subjects: Subjects, at: Path, context: BuildContext): AwsTags | undefined {
  if (spec.awsTags === undefined) return undefined
  const path = [...at, 'awsTags']
  const { principal, transitive = [] } = spec.awsTags
  const tags = new Map<string, Template>()
  for (const [name, value] of Object.entries(principal)) {
    if (isForbiddenKey(name)) context.issues.error([...path, 'principal', name], `"${name}" cannot be a tag`)
    else tags.set(name, readTemplate(value, subjects, [...path, 'principal', name], context))
  }
  if (tags.size > 50) context.issues.error([...path, 'principal'], 'a session has at most 50 tags')
  for (const [i, name] of transitive.entries()) {
    if (!tags.has(name)) context.issues.error([...path, 'transitive', i], `no principal tag is named "${name}"`)
  }
  return { principal: tags, transitive }
}
