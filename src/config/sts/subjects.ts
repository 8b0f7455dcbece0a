import { X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import type { SubjectIssuer } from '#config/configuration/token-endpoint.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import {
  type StsEndpointSpec,
  type StsFrame,
  type StsSubjectIssuerSpec,
  stsSubjectIssuerSchema,
} from '#config/kinds/sts.ts'
import { parseIssuerUrl, parseTrustedUrl } from '#kernel/address.ts'
import type { Path } from '#kernel/issues.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'

const kubernetesClass = 'targets.Kubernetes'
const clusterName = /^[A-Za-z0-9._-]{1,63}$/
/** As for every other token. */
const defaultToleranceSeconds = 30
const defaultAlgorithms = ['RS256']
/** The prefix of cluster roles, of Kubernetes' own accounts and of service accounts. */
const reservedName = 'system'
/** Claims that every token has; of these only `sub` is an attribute. */
const registeredClaims = new Set(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'])
const longestAuthorities = 65_536

/** The attributes of a service account, for rules, subjects and claims. */
const accountAttributes: readonly string[] = [
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
/** The tokens that an endpoint accepts, and their attributes for rules, subjects and claims. */
export interface Subjects {
  readonly clusters: readonly string[]
  readonly issuers: readonly SubjectIssuer[]
  /** Service accounts; otherwise subjects of issuers other than clusters. */
  readonly areAccounts: boolean
  readonly attributes: readonly string[]
  /** A problem of the subjects is already reported, so their attributes are unknown. */
  readonly unclear: boolean
}

/** `sts.issuers` by name. */
export function readSubjectIssuers(
  { issuers = [] }: StsFrame,
  context: BuildContext,
): ReadonlyMap<string, SubjectIssuer> {
  const targets = context.state.draft.targets
  const found = new Map<string, SubjectIssuer>()
  for (const [i, written] of issuers.entries()) {
    const at = ['sts', 'issuers', i]
    const spec = context.part(stsSubjectIssuerSchema, written, at)
    if (spec === undefined) continue
    const named = [...at, 'name']
    if (spec.name === reservedName) context.issues.error(named, `"${reservedName}" is reserved for Kubernetes`)
    if (found.has(spec.name)) context.issues.error(named, `another issuer is named "${spec.name}"`)
    if (targets.has(spec.name)) {
      context.issues.error(
        named,
        `a target has the name "${spec.name}" too, so subjects of the two could be the same; use another name`,
      )
    }
    const issuer = readSubjectIssuer(spec, at, context)
    if (!found.has(spec.name)) found.set(spec.name, issuer)
  }
  return found
}

function readSubjectIssuer(spec: StsSubjectIssuerSpec, at: Path, context: BuildContext): SubjectIssuer {
  const { issues } = context
  const attempt = <T>(field: string, read: () => T): T | undefined => {
    try {
      return read()
    } catch (error) {
      issues.error([...at, field], error instanceof Error ? error.message : String(error))
      return undefined
    }
  }
  attempt('issuer', () => parseIssuerUrl(spec.issuer))
  const { jwksUri, ca } = spec
  if (jwksUri !== undefined) attempt('jwksUri', () => parseTrustedUrl(jwksUri))
  const authorities =
    ca === undefined ? undefined : attempt('ca', () => readAuthorities(context.readFile(resolve(context.folder, ca))))
  const kubernetes = spec.kubernetes ?? false
  if (kubernetes && spec.claims !== undefined) {
    issues.error([...at, 'claims'], 'service accounts have the attributes of Kubernetes, so no claims are listed')
  }
  return {
    name: spec.name,
    issuer: spec.issuer,
    audience: spec.audience,
    jwksUri,
    authorities,
    algorithms: spec.algorithms ?? defaultAlgorithms,
    claims: readClaims(spec.claims ?? [], [...at, 'claims'], context),
    kubernetes,
    clockToleranceSeconds: spec.clockToleranceSeconds ?? defaultToleranceSeconds,
  }
}

function readAuthorities(pem: string): string {
  if (pem.length > longestAuthorities) throw new Error('the file is longer than 64 KiB')
  new X509Certificate(pem)
  return pem
}

function readClaims(claims: readonly string[], at: Path, { issues }: BuildContext): readonly string[] {
  const seen = new Set<string>()
  return claims.filter((claim, i) => {
    const key = claim.toLowerCase()
    const problem =
      registeredClaims.has(key) || key === 'issuer'
        ? `"${claim}" need not be listed: "sub" and "issuer" are attributes of every subject, the others of none`
        : accountAttributes.includes(key)
          ? `"${claim}" is an attribute of service accounts, and a claim of another issuer must not pass for it`
          : isForbiddenKey(claim) || /[\s${}()=]/.test(claim)
            ? `"${claim}" cannot be the name of an attribute`
            : seen.has(key)
              ? `"${claim}" is listed twice, since letter case does not count in names of attributes`
              : undefined
    seen.add(key)
    if (problem !== undefined) issues.error([...at, i], problem)
    return problem === undefined
  })
}

/** Clusters, issuers or both. Clusters have other attributes than the rest, so they do not mix. */
export function readSubjects(
  spec: StsEndpointSpec,
  known: ReadonlyMap<string, SubjectIssuer>,
  at: Path,
  context: BuildContext,
): Subjects {
  const path = [...at, 'subjectIssuers']
  const issuers = (spec.subjectIssuers ?? []).flatMap((name, i) => {
    const found = known.get(name)
    if (found === undefined) {
      context.issues.error(
        [...path, i],
        `no issuer named "${name}" in sts.issuers${suggestion(name, [...known.keys()])}`,
      )
    }
    return found ?? []
  })
  const clusters =
    spec.subjectIssuers !== undefined && spec.clusters === undefined ? [] : readClusters(spec, at, context)
  const areAccounts = clusters.length > 0 || issuers.length === 0 || issuers.every(({ kubernetes }) => kubernetes)
  const isMixed = areAccounts && !issuers.every(({ kubernetes }) => kubernetes)
  if (isMixed) {
    const problem =
      'service accounts and other subjects need endpoints of their own, since rules see different attributes'
    context.issues.error(path, problem)
  }
  const attributes = areAccounts
    ? accountAttributes
    : ['issuer', 'sub', 'token_sub', ...new Set(issuers.flatMap(({ claims }) => claims))]
  if (!areAccounts) {
    for (const name of ['incomingAudience', 'acceptApiServerAudience', 'acceptTokensWithoutPod'] as const) {
      if (spec[name] === undefined) continue
      context.issues.error([...at, name], 'belongs to endpoints for service accounts; an issuer has its own audience')
    }
  }
  const unclear = isMixed || (spec.subjectIssuers !== undefined && issuers.length === 0)
  return { clusters, issuers, areAccounts, attributes, unclear }
}

function readClusters(spec: StsEndpointSpec, at: Path, context: BuildContext): readonly string[] {
  const { issues } = context
  const targets = [...context.state.draft.targets.values()].map(({ config }) => config)
  const own = targets.filter(({ target }) => target.className === kubernetesClass).map(({ name }) => name)
  const found = own.length > 0 ? own : builtInClusters(context)
  const path = [...at, 'clusters']
  if (spec.clusters === undefined && found.length !== 1) {
    const have = found.length === 0 ? 'there is none, so add one for the cluster' : `there are ${found.join(', ')}`
    issues.error(path, `is required unless there is exactly one target of class ${kubernetesClass}; ${have}`)
  }
  for (const [i, name] of (spec.clusters ?? []).entries()) {
    context.refer('target', name, [...path, i])
    if (targets.some((target) => target.name === name) && !own.includes(name)) {
      issues.error([...path, i], `the target "${name}" isn't a cluster (class ${kubernetesClass})`)
    }
  }
  const clusters = spec.clusters ?? found
  if (spec.clusters === undefined) for (const name of found) context.refer('target', name, path)
  for (const [i, name] of clusters.entries()) {
    if (!clusterName.test(name)) {
      issues.error(
        spec.clusters === undefined ? path : [...path, i],
        `the name "${name}" cannot be part of a subject: use letters, digits, ".", "_" and "-", 63 at most`,
      )
    }
  }
  return clusters
}

/** The cluster of this process, which OpenUnison's objects use without a Target. */
const builtInClusters = ({ state }: BuildContext): string[] =>
  Array.from(state.catalog.builtInTargets ?? []).flatMap(([name, { className }]) =>
    className === kubernetesClass && !state.draft.targets.has(name) ? [name] : [],
  )

/** What is wrong with the name of an attribute; undefined if subjects have it, or their attributes are unknown. */
export function unknownAttribute(name: string, { areAccounts, attributes, unclear }: Subjects): string | undefined {
  if (unclear) return undefined
  if (attributes.some((known) => known.toLowerCase() === name.toLowerCase())) return undefined
  const who = areAccounts ? 'service accounts have' : 'the subjects of this endpoint have'
  return `${who} no attribute "${name}"${suggestion(name, attributes)}`
}
