import type { EventStreamOptions } from '#features/scim/events/event-stream.ts'
import { type EntryType, userType } from '#features/scim/types/entry-type.ts'
import type { Dn } from '#identity/dn.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { Rate } from '#kernel/rate-limit.ts'
import {
  type AttributePath,
  internalName,
  isCore,
  pathKey,
  ResourceSchema,
} from '#protocols/scim/schema/resource-schema.ts'
import { enterpriseUserSchema, groupSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { type PreparedMapping, prepareMapping } from '#sdk/mapper/mapping.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { ResourceType } from '#sdk/module/resource-type.ts'
import {
  checkNames,
  derivedFilterNames,
  type FilterNames,
  groupMapping,
  namedMapping,
  noMapping,
  readFilterNames,
  readLists,
  readRules,
  readSchemas,
  resolvePaths,
  shownParts,
  userMapping,
} from './mapping-config.ts'
import { type ClientProfile, clientProfiles, parameterTable } from './parameter-table.ts'
import type { PlainList } from './plain-list.ts'
import type { SchemaMapping } from './schema-mapping.ts'
import type { EventPayload } from './security-events.ts'

export type GatewayConfig = ReturnType<typeof parseGatewayConfig>

type Lookup =
  | { readonly kind: 'target'; readonly name: string; readonly path: Path }
  | { readonly kind: 'directory'; readonly base: Dn }

type Values = ParsedParameters<typeof parameterTable>

function parseGatewayConfig(params: Params, issues: Issues, context: ParseContext) {
  const values = readParameters(parameterTable, params, issues, context)
  const loginAttribute = readLoginAttribute(values, params, issues)
  const mappings = readMappings(values, loginAttribute, params, issues, context)
  const { userResource, groupResource, userFilters, groupFilters, ofUsers, ofGroups } = mappings
  const { toInternal, toScim, scimPaths, configured, builtIn, mappingPath } = mappings
  const lists = configured.map(({ list }) => list)
  return {
    lookup: readLookup(values, params, issues),
    users: {
      type: userType as EntryType,
      loginAttribute,
      idAttribute: readIdAttribute(values, loginAttribute, params, issues),
      /** Where the target marks a user whose delete only deactivated it; the database of Gatehouse if undefined. */
      deletedAttribute: values.deletedAttributeName,
      /** Whether a manager that is not a user is refused, or stored and shown as sent. */
      unknownManager: values.unknownManager ?? (storesManagers(ofUsers) ? 'refuse' : 'accept'),
      filterNames: userFilters,
      /** The internal attribute of the displayName. */
      displayAttribute: displayAttribute(userResource, userFilters, ofUsers),
      /** The core and enterprise schemas and those of the configuration. */
      schema: userResource,
      /** The built-in mapping; empty if only the mapping lines apply. */
      mapping: ofUsers,
      lists: configured,
      /** The internal attributes that the mappings produce. */
      produces: [...toInternal.produces.map(({ attribute }) => attribute), ...ofUsers.produces],
      /** The attribute that deactivates a user. */
      active: userResource.resolveAttribute('active'),
      showsGroups: builtIn || Array.from(scimPaths.values()).some((path) => isCore(path, 'groups')),
      /** Where the built-in mapping and the lines that read SCIM attributes are configured. */
      mappingPath,
      linesPath: params.pathOf('scim2tremolo'),
    },
    groups: {
      lookupAttribute: values.groupLookupAttributeName,
      idAttribute: values.groupIdName,
      displayAttribute: values.groupDisplayName,
      memberAttribute: values.groupMemberAttributeName,
      /** Two groups may have one displayName. */
      sharesNames: readSharing(values, params, issues),
      filterNames: groupFilters,
      schema: groupResource,
      /** The built-in mapping of all but name and members; empty if it is not configured. */
      mapping: ofGroups,
    },
    workflows: {
      user: values.workflowName,
      deleteUser: values.deleteUserWorkflowName,
      members: values.groupWorkflow,
      deleteGroup: values.groupDeleteWorkflow,
      createGroup: values.groupCreateWorkflow,
      updateGroup: values.groupUpdateWorkflow,
      nestGroup: values.groupNestingWorkflow,
    },
    /** Attributes that clients may send although nothing stores them. */
    ignored: ignoredAttributes(values.ignoreUnmapped, [userResource, groupResource]),
    ignoreUnmapped: values.ignoreUnmapped,
    /** The ResourceType objects that it serves. */
    typeNames: values.resourceTypes,
    client: readClient(values),
    dryRun: values.dryRun,
    /** Of each client; undefined if it is not limited. */
    rate: readRate(values, params, issues),
    /** The SCIM names of internal attributes, by their names in lower case, for error texts. */
    clientNames: clientNamesOf(toInternal, [...ofUsers.produces, ...ofGroups.produces], lists, loginAttribute),
    /** The number of calls that the journal keeps; 0 for no journal. */
    journal: values.journal,
    events: readEvents(values, params, issues),
    toInternal,
    toScim,
    /** The path of the value of each rule of tremolo2scim. */
    scimPaths,
    /** The parts that these rules show, where that is known. */
    shownParts: shownParts(mappings.usable, scimPaths),
  }
}

/** The schemas, and how their attributes are called inside. */
function readMappings(values: Values, loginAttribute: string, params: Params, issues: Issues, context: ParseContext) {
  const userResource = readSchemas(params, 'userSchema', new ResourceSchema(userSchema, [enterpriseUserSchema]), issues)
  const groupResource = readSchemas(params, 'groupSchema', new ResourceSchema(groupSchema), issues)
  const builtIn = values.mapping === 'scim'
  const incoming = readRules('scim2tremolo', values, params, issues)
  const outgoing = readRules('tremolo2scim', values, params, issues)
  const scimPaths = resolvePaths(outgoing, userResource, issues)
  const usable = outgoing.filter((rule) => scimPaths.has(rule.attribute))
  const toInternal = prepareMapping(incoming, issues, context)
  const toScim = prepareMapping(usable, issues, context)
  const derived = derivedFilterNames(incoming, usable, userResource, scimPaths)
  const userFilters = readFilterNames(params, 'userFilterScim2Ldap', userResource, issues, derived)
  const groupFilters = readFilterNames(params, 'groupFilterScim2Ldap', groupResource, issues, new Map())
  const configured = readLists(values, userResource, scimPaths.values(), params, issues)
  const lists = configured.map(({ list }) => list)
  const ofUsers = builtIn ? userMapping(userResource, incoming, scimPaths.values(), lists) : noMapping(userResource)
  const ofGroups = builtIn ? groupMapping(groupResource, groupFilters) : noMapping(groupResource)
  const mappingPath = params.pathOf('mapping')
  checkNames(ofUsers, loginAttribute, mappingPath, issues)
  checkNames(ofGroups, values.groupLookupAttributeName, mappingPath, issues)
  return {
    userResource,
    groupResource,
    userFilters,
    groupFilters,
    ofUsers,
    ofGroups,
    toInternal,
    toScim,
    scimPaths,
    /** The rules of tremolo2scim whose SCIM attributes there are. */
    usable,
    configured,
    builtIn,
    mappingPath,
  }
}

function readClient({ client, groupPatchAnswer }: Values): ClientProfile {
  const profile: ClientProfile = clientProfiles[client]
  return groupPatchAnswer === undefined ? profile : { ...profile, groupPatch: groupPatchAnswer }
}

function readRate({ requestsPerMinute, requestBurst }: Values, params: Params, issues: Issues): Rate | undefined {
  if (requestsPerMinute > 0) return { perMinute: requestsPerMinute, burst: requestBurst || requestsPerMinute }
  if (requestBurst > 0) issues.error(params.pathOf('requestBurst'), '"requestBurst" needs "requestsPerMinute"')
  return undefined
}

/** `displayName` if nothing is mapped. */
function displayAttribute(schema: ResourceSchema, filterNames: FilterNames, mapping: SchemaMapping): string {
  const path = schema.resolveAttribute('displayName')
  return (path && (filterNames.get(pathKey(path)) ?? mapping.locate(path)?.names[0])) ?? 'displayName'
}

/** A mapping line or a list in plain attributes has a SCIM name; the built-in mapping otherwise uses the SCIM names. */
function clientNamesOf(
  lines: PreparedMapping,
  builtIn: readonly string[],
  lists: readonly PlainList[],
  login: string,
): Map<string, string> {
  const names = new Map(builtIn.map((name) => [name.toLowerCase(), name]))
  for (const [name, shown] of lists.flatMap((one) => one.clientNames())) names.set(name.toLowerCase(), shown)
  for (const { attribute, path } of lines.produces) {
    const read = lines.reads.find((one) => String(one.path) === String(path))
    if (read !== undefined) names.set(attribute.toLowerCase(), read.attribute)
  }
  return names.set(login.toLowerCase(), 'userName')
}

/** The built-in mapping stores managers as ids of users; mapping lines may store anything. */
const storesManagers = ({ taken }: SchemaMapping): boolean =>
  taken.some(
    ({ attribute, sub, extension }) =>
      extension === enterpriseUserSchema.id && attribute.name === 'manager' && sub?.name === 'value',
  )

/** Required with mapping lines only; the built-in mapping has a default. */
function readLoginAttribute(values: Values, params: Params, issues: Issues): string {
  const { uidAttributeName, mapping } = values
  if (uidAttributeName !== undefined) return uidAttributeName
  if (mapping !== 'scim') {
    issues.error(params.pathOf('uidAttributeName'), 'parameter "uidAttributeName" is required')
  }
  return 'userName'
}

/** Users are looked up by their id, so without an attribute for ids another lookup attribute than the login's holds them. */
function readIdAttribute(values: Values, login: string, params: Params, issues: Issues): string | undefined {
  const { idAttributeName: id, lookupAttributeName: lookup = login } = values
  const differs = (name: string): boolean => name.toLowerCase() !== lookup.toLowerCase()
  if (id !== undefined && differs(id) && differs(login)) {
    const text = `users are looked up by their id, which is "${id}" by idAttributeName, and by their login`
    issues.warning(
      params.pathOf('lookupAttributeName'),
      `"lookupAttributeName" has no effect: ${text}; remove one of them`,
    )
  }
  return id ?? (differs(login) ? lookup : undefined)
}

/** Targets identify groups by name, so groups can share a displayName only if it is another attribute. */
function readSharing(values: Values, params: Params, issues: Issues): boolean {
  const { groupNames, groupDisplayName, groupLookupAttributeName } = values
  if (groupNames !== 'shared') return false
  if (groupDisplayName !== undefined && groupDisplayName.toLowerCase() !== groupLookupAttributeName.toLowerCase()) {
    return true
  }
  const remedy = `set groupDisplayName to an attribute other than "${groupLookupAttributeName}", such as displayName`
  issues.error(params.pathOf('groupNames'), `groupNames "shared": groups are known by their names, so ${remedy}`)
  return false
}

function readLookup(values: Values, params: Params, issues: Issues): Lookup {
  if (values.lookupFromLDAP) {
    const base = values.searchBase
    if (base !== undefined) return { kind: 'directory', base }
    if (params.values('searchBase').every((value) => value === '')) {
      issues.error(params.pathOf('searchBase'), 'parameter "searchBase" is required when lookupFromLDAP is "true"')
    }
  } else if (values.lookupTarget === undefined) {
    issues.error(params.pathOf('lookupTarget'), 'parameter "lookupTarget" is required unless lookupFromLDAP is "true"')
  }
  return { kind: 'target', name: values.lookupTarget ?? '', path: params.pathOf('lookupTarget') }
}

export function summarize({ lookup, users, workflows, events }: GatewayConfig): { label: string; value: string }[] {
  const rows: [string, string | undefined][] = [
    lookup.kind === 'target' ? ['target', lookup.name] : ['directory', lookup.base.toString()],
    ['mapping', users.mapping.isEmpty ? undefined : `scim, ${users.mapping.produces.length} internal attributes`],
    ['workflow: user', workflows.user],
    ['workflow: delete user', workflows.deleteUser],
    ['workflow: group members', workflows.members],
    ['workflow: delete group', workflows.deleteGroup],
    ['workflow: create group', workflows.createGroup],
    ['workflow: update group', workflows.updateGroup],
    ['workflow: nest groups', workflows.nestGroup],
    ['events', events?.stream.name],
  ]
  return rows.flatMap(([label, value]) => (value === undefined ? [] : [{ label, value }]))
}

interface EventsConfig {
  readonly stream: EventStreamOptions
  readonly payload: EventPayload
}

const others = ['eventsIssuer', 'eventsAudience', 'eventsPushUrl', 'eventsPushToken', 'eventsKey', 'eventsPayload']

/** Undefined if the gateway sends no events; parameters without effect are then errors. */
function readEvents(
  values: ParsedParameters<typeof parameterTable>,
  params: Params,
  issues: Issues,
): EventsConfig | undefined {
  const given = (name: string): boolean => params.values(name).some((value) => value !== '')
  if (values.events === undefined) {
    if (given('events')) return undefined
    for (const name of others.filter(given)) {
      issues.error(params.pathOf(name), `parameter "${name}" needs the parameter "events"`)
    }
    return undefined
  }
  const missing = ['eventsIssuer', 'eventsAudience'].filter((name) => !given(name))
  for (const name of missing) issues.error(params.pathOf(name), `parameter "${name}" is required with "events"`)
  const { eventsPushUrl: url, eventsPushToken: token } = values
  if (given('eventsPushToken') && !given('eventsPushUrl')) {
    issues.error(params.pathOf('eventsPushToken'), 'parameter "eventsPushToken" needs the parameter "eventsPushUrl"')
  }
  return {
    payload: values.eventsPayload,
    stream: {
      name: values.events,
      issuer: values.eventsIssuer ?? '',
      audience: values.eventsAudience ?? '',
      key: values.eventsKey,
      push: url === undefined ? undefined : { url, ...(token === undefined ? {} : { token }) },
    },
  }
}

/** Attributes that clients may send although nothing stores them (`ignoreUnmapped`). */
export interface IgnoredAttributes {
  has(path: AttributePath): boolean
  /** For a name that is not in any schema, such as the URN of an unknown extension, or a path below it. */
  hasName(name: string): boolean
}

function ignoredAttributes(names: readonly string[], schemas: readonly ResourceSchema[]): IgnoredAttributes {
  const lower = names.map((name) => name.trim().toLowerCase())
  const covers = (listed: string, name: string): boolean =>
    name.startsWith(listed) && (name.length === listed.length || ':.['.includes(name.charAt(listed.length)))
  const paths = schemas.flatMap((schema) => names.flatMap((name) => schema.resolve(name.trim()) ?? []))
  const keys = new Set(
    paths.map((path) => (path.kind === 'schema' ? `${path.schema.id}:` : internalName(path)).toLowerCase()),
  )
  const isListed = ({ attribute, extension, sub }: AttributePath): boolean => {
    const whole = extension === undefined ? { attribute } : { attribute, extension }
    const candidates = [internalName(whole), ...(sub === undefined ? [] : [internalName({ ...whole, sub })])]
    if (extension !== undefined) candidates.push(`${extension}:`)
    return candidates.some((name) => keys.has(name.toLowerCase()))
  }
  return { has: isListed, hasName: (name) => lower.some((listed) => covers(listed, name.toLowerCase())) }
}

/** What users are looked up in, as a name that all gateways on it share. */
export const lookupPlace = (lookup: GatewayConfig['lookup']): string =>
  lookup.kind === 'target' ? `target/${lookup.name}` : `directory/${lookup.base}`

/** What a gateway serves: users and groups, and the resources of other types. */
export interface ServedConfig extends GatewayConfig {
  /** A configuration for each other type, whose users are the resources of the type. */
  readonly types: readonly GatewayConfig[]
}

/** Types that one gateway can't serve together are reported and left out. */
export function parseServedConfig(params: Params, issues: Issues, context: ParseContext): ServedConfig {
  const own = parseGatewayConfig(params, issues, context)
  const taken = new Map<string, string>()
  const claim = (key: string, text: string, name: string): string | undefined => {
    const other = taken.get(key.toLowerCase())
    taken.set(key.toLowerCase(), name)
    return other === undefined ? undefined : `"${name}" has ${text}, and so has ${other}: one of them must change`
  }
  for (const { core, extensions } of [own.users.schema, own.groups.schema]) {
    for (const { id } of [core, ...extensions]) claim(`schema ${id}`, '', `${core.name.toLowerCase()}s of this gateway`)
  }
  const types = own.typeNames.flatMap((name, i): GatewayConfig[] => {
    const type = context.resourceType?.(name)
    if (type === undefined) return []
    const { schema, endpoint } = type
    const typeName = schema.core.name
    const path = params.pathOf('resourceTypes', i)
    const problem =
      claim(`type ${typeName}`, `the name "${typeName}"`, name) ??
      claim(`endpoint ${endpoint}`, `the endpoint "${endpoint}"`, name) ??
      [schema.core, ...schema.extensions]
        .map(({ id }) => claim(`schema ${id}`, `the schema "${id}"`, name))
        .find((text) => text !== undefined)
    if (problem === undefined) return [typeConfig(own, type, path, issues, context)]
    issues.error(path, problem)
    return []
  })
  return { ...own, types }
}

/** The client's habits, the journal and the events are those of the gateway. */
function typeConfig(
  own: GatewayConfig,
  type: ResourceType,
  path: Path,
  issues: Issues,
  context: ParseContext,
): GatewayConfig {
  const { schema, endpoint, nameAttribute, target, workflow, deleteWorkflow } = type
  const { name } = schema.core
  const mapping = namedMapping(schema, nameAttribute)
  const lines = prepareMapping([], issues, context)
  const groups = new ResourceSchema(groupSchema)
  return {
    ...own,
    lookup: { kind: 'target', name: target, path },
    users: {
      type: { name, endpoint, nameAttribute, noun: name, isCustom: true },
      loginAttribute: nameAttribute,
      idAttribute: undefined,
      deletedAttribute: undefined,
      unknownManager: 'accept',
      filterNames: new Map(),
      displayAttribute: nameAttribute,
      schema,
      mapping,
      lists: [],
      produces: [...mapping.produces],
      active: undefined,
      showsGroups: false,
      mappingPath: path,
      linesPath: path,
    },
    groups: {
      ...own.groups,
      idAttribute: undefined,
      displayAttribute: undefined,
      filterNames: new Map(),
      schema: groups,
      mapping: noMapping(groups),
    },
    workflows: {
      user: workflow,
      deleteUser: deleteWorkflow,
      members: undefined,
      deleteGroup: undefined,
      createGroup: undefined,
      updateGroup: undefined,
      nestGroup: undefined,
    },
    ignored: ignoredAttributes(own.ignoreUnmapped, [schema]),
    client: { ...own.client, rehire: 'refuse', aliases: new Map() },
    clientNames: new Map([...mapping.produces, nameAttribute].map((one) => [one.toLowerCase(), one])),
    toInternal: lines,
    toScim: lines,
    scimPaths: new Map(),
    shownParts: new Map(),
  }
}
