import type { Dn } from '#identity/dn.ts'
import type { Issues } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import { type AttributePath, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { enterpriseUserSchema } from '#protocols/scim/schemas/enterprise-user.ts'
import { groupSchema } from '#protocols/scim/schemas/group.ts'
import { userSchema } from '#protocols/scim/schemas/user.ts'
import type { AttributeFlow } from '#sdk/flow.ts'
import { type MappingRule, type PreparedMapping, prepareMapping } from '#sdk/mapping.ts'
import { type ParsedParameters, readParameters } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { ParseContext } from '#sdk/parse-context.ts'
import { type FilterNames, readFilterNames } from './filter-names.ts'
import { parameterTable } from './parameter-table.ts'
import { supportedUserSchema } from './supported-schema.ts'

export interface GatewayConfig {
  readonly lookup:
    | { readonly kind: 'target'; readonly name: string }
    | { readonly kind: 'directory'; readonly base: Dn }
  readonly users: {
    readonly loginAttribute: string
    readonly idAttribute: string | undefined
    readonly lookupAttribute: string
    readonly filterNames: FilterNames
    /** What clients may send; everything of the core and enterprise schemas. */
    readonly schema: ResourceSchema
    /** What this gateway keeps and shows, for /Schemas. */
    readonly supported: ResourceSchema
  }
  readonly groups: {
    readonly lookupAttribute: string
    readonly idAttribute: string | undefined
    readonly displayAttribute: string | undefined
    readonly memberAttribute: string
    readonly filterNames: FilterNames
    readonly schema: ResourceSchema
  }
  readonly workflows: {
    readonly user: string
    readonly deleteUser: string | undefined
    readonly members: string | undefined
    readonly deleteGroup: string | undefined
  }
  readonly toInternal: PreparedMapping
  readonly toScim: PreparedMapping
  /** Where each rule of tremolo2scim puts its value. */
  readonly scimPaths: ReadonlyMap<string, AttributePath>
}

type Values = ParsedParameters<typeof parameterTable>
type Direction = 'scim2tremolo' | 'tremolo2scim'

const userResource = new ResourceSchema(userSchema, [enterpriseUserSchema])
const groupResource = new ResourceSchema(groupSchema)

export function parseGatewayConfig(params: Params, issues: Issues, context: ParseContext): GatewayConfig {
  const values = readParameters(parameterTable, params, issues, context)
  const incoming = readRules('scim2tremolo', values, params, issues)
  const outgoing = readRules('tremolo2scim', values, params, issues)
  const scimPaths = resolvePaths(outgoing, issues)
  const usable = outgoing.filter((rule) => scimPaths.has(rule.attribute))
  const toInternal = prepareMapping(incoming, issues, context)
  const toScim = prepareMapping(usable, issues, context)
  const derived = derivedFilterNames(incoming, usable, scimPaths)
  return {
    lookup: readLookup(values, params, issues),
    users: {
      loginAttribute: values.uidAttributeName,
      idAttribute: values.idAttributeName,
      lookupAttribute: values.lookupAttributeName ?? values.uidAttributeName,
      filterNames: readFilterNames(params, 'userFilterScim2Ldap', userResource, issues, derived),
      schema: userResource,
      supported: supportedUserSchema(userResource, scimPaths.values(), toInternal),
    },
    groups: {
      lookupAttribute: values.groupLookupAttributeName,
      idAttribute: values.groupIdName,
      displayAttribute: values.groupDisplayName,
      memberAttribute: values.groupMemberAttributeName,
      filterNames: readFilterNames(params, 'groupFilterScim2Ldap', groupResource, issues, new Map()),
      schema: groupResource,
    },
    workflows: {
      user: values.workflowName,
      deleteUser: values.deleteUserWorkflowName,
      members: values.groupWorkflow,
      deleteGroup: values.groupDeleteWorkflow,
    },
    toInternal,
    toScim,
    scimPaths,
  }
}

function readLookup(values: Values, params: Params, issues: Issues): GatewayConfig['lookup'] {
  if (values.lookupFromLDAP) {
    const base = values.searchBase
    if (base !== undefined) return { kind: 'directory', base }
    if (params.values('searchBase').every((value) => value === '')) {
      issues.error(params.pathOf('searchBase'), 'parameter "searchBase" is required when lookupFromLDAP is "true"')
    }
  } else if (values.lookupTarget === undefined) {
    issues.error(params.pathOf('lookupTarget'), 'parameter "lookupTarget" is required unless lookupFromLDAP is "true"')
  }
  return { kind: 'target', name: values.lookupTarget ?? '' }
}

/** The list and the `.source` parameters must name the same attributes. */
function readRules(direction: Direction, values: Values, params: Params, issues: Issues): MappingRule[] {
  const sources = values[`${direction}.<attribute>.source`]
  const types = values[`${direction}.<attribute>.sourceType`]
  const listed = values[direction]
  for (const part of ['source', 'sourceType', 'targetType'] as const) {
    for (const attribute of values[`${direction}.<attribute>.${part}`].keys()) {
      if (listed.includes(attribute)) continue
      const name = `${direction}.${attribute}.${part}`
      issues.error(
        params.pathOf(name),
        `"${attribute}" is not in the list ${direction}${suggestion(attribute, listed)}`,
      )
    }
  }
  return listed.flatMap((attribute, i) => {
    const source = sources.get(attribute)
    if (source === undefined) {
      issues.error(params.pathOf(direction, i), `"${attribute}" has no parameter "${direction}.${attribute}.source"`)
      return []
    }
    const path = params.pathOf(`${direction}.${attribute}.source`)
    return [{ attribute, source, sourceType: types.get(attribute) ?? 'user', path }]
  })
}

/** Attributes that the gateway makes itself. */
const ownAttributes = new Set(['id', 'schemas', 'meta', 'password'])

function resolvePaths(rules: readonly MappingRule[], issues: Issues): Map<string, AttributePath> {
  const paths = new Map<string, AttributePath>()
  for (const { attribute, path } of rules) {
    const resolved = userResource.resolve(attribute)
    if (resolved?.kind !== 'attribute') {
      const known = Array.from(userResource.attributes(), (ref) => ref.attribute.name)
      issues.error(path, `no SCIM user attribute "${attribute}"${suggestion(attribute, known)}`)
    } else if (ownAttributes.has(resolved.attribute.name)) {
      issues.warning(path, `"${resolved.attribute.name}" is made by the gateway itself; the mapping is not used`)
    } else if (resolved.sub !== undefined && resolved.attribute.multiValued) {
      issues.error(path, `"${attribute}" is part of a list; map "${resolved.attribute.name}" as a whole`)
    } else {
      paths.set(attribute, resolved)
    }
  }
  return paths
}

/** One-to-one rules say by which attribute to filter; what is shown counts for more than what is taken. */
function derivedFilterNames(
  incoming: readonly MappingRule[],
  outgoing: readonly MappingRule[],
  scimPaths: ReadonlyMap<string, AttributePath>,
): ReadonlyMap<AttributePath, string> {
  const names = new Map<AttributePath, string>()
  const add = (path: AttributePath | undefined, internal: string): void => {
    // Logins are looked up, not compared by a mapped copy.
    if (path !== undefined && path.attribute.name !== 'userName') names.set(path, internal)
  }
  for (const { sourceType, source, attribute } of incoming) {
    if (sourceType === 'user') add(userResource.resolveAttribute(source), attribute)
  }
  for (const { sourceType, source, attribute } of outgoing) {
    if (sourceType === 'user') add(scimPaths.get(attribute), source)
  }
  return names
}

export function gatewayFlow(config: GatewayConfig): AttributeFlow {
  const { users, workflows, lookup } = config
  const given = [
    users.loginAttribute,
    users.lookupAttribute,
    ...(users.idAttribute === undefined ? [] : [users.idAttribute]),
  ]
  return {
    produces: config.toInternal.produces,
    workflows: [workflows.user, workflows.deleteUser, workflows.members].filter((name) => name !== undefined),
    reads: config.toScim.reads,
    target: lookup.kind === 'target' ? lookup.name : undefined,
    given,
  }
}

export function summarize({ lookup, workflows }: GatewayConfig): { label: string; value: string }[] {
  const rows: [string, string | undefined][] = [
    lookup.kind === 'target' ? ['target', lookup.name] : ['directory', lookup.base.toString()],
    ['workflow: user', workflows.user],
    ['workflow: delete user', workflows.deleteUser],
    ['workflow: group members', workflows.members],
    ['workflow: delete group', workflows.deleteGroup],
  ]
  return rows.flatMap(([label, value]) => (value === undefined ? [] : [{ label, value }]))
}
