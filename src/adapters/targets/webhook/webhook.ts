import { parseTrustedUrl } from '#kernel/address.ts'
import type { Issues } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import { compileJsonPath, type JsonPath } from '#kernel/text/json-path.ts'
import { authorityParameters, readAuthority } from '#sdk/module/authority.ts'
import type { Parameter, ParameterOptions } from '#sdk/module/parameter-types.ts'
import { flag, parsed, parsedList, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import {
  type ParameterReport,
  type ParameterTable,
  type ParsedParameters,
  parameterReport,
  readParameters,
} from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'
import {
  type BodyTemplate,
  type HeaderTemplate,
  isHeaderName,
  parseBodyTemplate,
  parseHeaderTemplate,
  parseRequestTemplate,
  type RequestTemplate,
} from './templates.ts'
import {
  type Capabilities,
  type EntryPaths,
  hasPlace,
  isOperation,
  kindOf,
  type Narrowings,
  type Operation,
  type OperationName,
  type Operations,
  operationNames,
  storedUserAttributes,
  type WebhookConfig,
} from './webhook-config.ts'

/** A path with its source text. */
interface WrittenPath {
  readonly text: string
  readonly find: JsonPath
}

const path = (about: string, options: Partial<ParameterOptions> = {}): Parameter<WrittenPath | undefined> =>
  parsed('JSON path', (written) => ({ text: written, find: compileJsonPath(written) }), { about, ...options })

const request = (about: string, options: Partial<ParameterOptions> = {}): Parameter<RequestTemplate | undefined> =>
  parsed('request', parseRequestTemplate, { about, ...options })

const headerName = (about: string, fallback: string): Parameter<string> =>
  parsed(
    'text',
    (value) => {
      if (isHeaderName(value)) return value
      throw new Error(`"${value}" cannot be the name of a header`)
    },
    { about, fallback },
  )

const headers = (about: string): Parameter<readonly HeaderTemplate[]> =>
  parsedList('headers', parseHeaderTemplate, { about })

const statuses = (about: string, options: Partial<ParameterOptions> = {}): Parameter<readonly number[]> =>
  parsedList(
    'statuses',
    (value) => {
      if (!/^[1-5]\d\d$/.test(value)) throw new Error(`"${value}" is not an HTTP status`)
      return Number(value)
    },
    { about, ...options },
  )

const required: ReadonlySet<OperationName> = new Set(['findUser', 'createUser', 'updateUser', 'deleteUser'])

const requests = Object.fromEntries(
  operationNames.map((name) => {
    const { about, requirement } = kindOf(name)
    const options = requirement === undefined ? {} : { requirement }
    return [name, request(about, { required: required.has(name), ...options })]
  }),
) as Record<OperationName, Parameter<RequestTemplate | undefined>>

const parameters = {
  url: parsed('https address', parseBaseUrl, {
    about: 'The address of the API; paths are below it. `https:`, or `http:` on this machine only.',
    required: true,
  }),
  bearerToken: text({
    about: 'Sent as `Authorization: Bearer`. One of this, `basicUser` and `apiKey` at most.',
    secret: true,
  }),
  basicUser: text({ about: 'The user of `Authorization: Basic`.' }),
  basicPassword: text({ about: 'The password of `basicUser`.', requirement: 'with `basicUser`', secret: true }),
  apiKey: text({ about: 'Sent as `apiKeyHeader`.', secret: true }),
  apiKeyHeader: headerName('The header of `apiKey`.', 'X-Api-Key'),
  headers: headers('Headers of every request, such as `X-Tenant: acme`.'),
  signingSecret: text({
    about: 'Every request is [signed](../../guides/webhook-target.md#signatures) with it (HMAC-SHA256).',
    secret: true,
  }),
  signatureHeader: headerName('The header of the signature.', 'X-Signature'),
  timestampHeader: headerName(
    'The header of the time that is signed along, in seconds since 1970.',
    'X-Signature-Timestamp',
  ),
  ...authorityParameters,
  timeoutMillis: wholeNumber({
    about: 'How long a call may take, attempts and waits included.',
    fallback: 10_000,
    min: 100,
    max: 120_000,
  }),
  retries: wholeNumber({ about: 'Number of retries of a failed call.', fallback: 3, min: 0, max: 10 }),
  idempotencyKeys: flag({
    about:
      '`"true"`: the API does a request with an `Idempotency-Key` it knows only once, so POST and PATCH are retried too.',
  }),
  connections: wholeNumber({ about: 'Maximum number of open connections.', fallback: 10, min: 1, max: 100 }),
  maxAnswerKilobytes: wholeNumber({ about: 'The largest answer that is read.', fallback: 4096, min: 1, max: 65_536 }),
  pageSize: wholeNumber({ about: 'The value of `{limit}`.', fallback: 100, min: 1, max: 10_000 }),
  firstPage: wholeNumber({ about: 'The first value of `{page}`.', fallback: 1, min: 0, max: 1 }),
  maxEntries: wholeNumber({
    about: 'Maximum number of users or groups that a search reads; more are rejected.',
    fallback: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  'user.userID': path('The path of the login in a user.', { required: true }),
  'user.id': path('The API’s own id; the login is the id when absent.'),
  'user.version': path('What changes with every change to the user.'),
  'user.created': path('When the user was created, as an ISO 8601 time. SCIM shows it as `meta.created`.'),
  'user.modified': path('When the user was last changed, as an ISO 8601 time. SCIM shows it as `meta.lastModified`.'),
  'user.groups': path('The names of the user’s groups.', { requirement: 'for memberships, or `userGroups`' }),
  'user.groupIds': path(
    'The ids of the user’s groups, in the order of `user.groups`. With them, SCIM shows the groups of a user without a request for each.',
  ),
  'user.attribute.<name>': path(
    'The values of an attribute in a user. One with the same path as `user.userID` is the login under another name.',
  ),
  'group.name': path('The path of the name in a group.', { requirement: 'for groups' }),
  'group.id': path('The API’s own id; the name is the id when absent.'),
  'group.version': path('What changes with every change to the group.'),
  'group.created': path('When the group was created, as an ISO 8601 time.'),
  'group.modified': path('When the group was last changed, as an ISO 8601 time.'),
  'group.members': path('The members in a group.'),
  'group.attribute.<name>': path('The values of an attribute in a group.'),
  membersAreIds: flag({ about: '`"true"`: members are the users’ ids, else their logins.' }),
  ...requests,
  'searchUsers.by.<attribute>': request(
    'Lists the users who have `{value}` in this attribute, in any letter case; used where a filter asks for it.',
  ),
  'searchGroups.by.<attribute>': request('Lists the groups that have `{value}` in this attribute.'),
  '<operation>.body': parsed<BodyTemplate>('JSON with places', parseBodyTemplate, {
    about: 'The JSON body of the request, with places in its strings.',
  }),
  '<operation>.headers': headers('More headers of the request, such as `If-Match: "{version}"`.'),
  '<operation>.items': path(
    'Where in the answer the users, groups or names are: `$` for one, `$[*]` for a list when absent. A list that is found counts as its elements.',
  ),
  '<operation>.total': path(
    'The path of the total count in the answer to a list request. A list that ends before it is an error; without it, an empty page is the end.',
  ),
  '<operation>.next': path(
    'The path of the next `{cursor}` in the answer to a list request; none, null or empty is the end.',
    { requirement: 'with `{cursor}`' },
  ),
  '<operation>.status': statuses('The statuses of success; any of 200 to 299 when absent.'),
  '<operation>.notFound': statuses('The statuses of "not found".', { requirement: 'no, `404`, `410`' }),
} satisfies ParameterTable

function parseBaseUrl(written: string): URL {
  const url = parseTrustedUrl(written)
  if (url.search !== '' || url.hash !== '') throw new Error('must not hold a query or a fragment')
  return url
}

export function parseWebhook(params: Params, issues: Issues, context: ParseContext): WebhookConfig {
  const given = readParameters(parameters, params, issues, context)
  const report = parameterReport(params, issues)
  const operations = readOperations(given, report)
  const can = checkOperations(operations, given, report)
  const { signingSecret, signatureHeader, timestampHeader } = given
  return {
    connection: {
      url: given.url ?? new URL('https://localhost'),
      authority: readAuthority(given, params, issues, context),
      headers: [...readCredentials(given, report), ...readHeaders(given, report)],
      signing: signingSecret === undefined ? undefined : { secret: signingSecret, signatureHeader, timestampHeader },
      connections: given.connections,
      timeoutMillis: given.timeoutMillis,
      retries: given.retries,
      idempotencyKeys: given.idempotencyKeys,
      maxAnswerBytes: given.maxAnswerKilobytes * 1024,
    },
    limits: { pageSize: given.pageSize, firstPage: given.firstPage, maxEntries: given.maxEntries },
    user: readPaths('user', given),
    group: readPaths('group', given),
    membersAreIds: given.membersAreIds,
    operations,
    usersBy: readNarrowings('searchUsers', given, report),
    groupsBy: readNarrowings('searchGroups', given, report),
    can,
  }
}

function readPaths(entry: 'user' | 'group', given: Given): EntryPaths {
  const attributes = new Map<string, JsonPath>()
  const aliases = new Set<string>()
  const name = entry === 'user' ? given['user.userID'] : given['group.name']
  for (const [attribute, path] of given[`${entry}.attribute.<name>`]) {
    if (path === undefined) continue
    attributes.set(attribute, path.find)
    if (path.text === name?.text) aliases.add(attribute.toLowerCase())
  }
  return {
    name: name?.find ?? compileJsonPath('$.name'),
    id: given[`${entry}.id`]?.find,
    version: given[`${entry}.version`]?.find,
    created: given[`${entry}.created`]?.find,
    modified: given[`${entry}.modified`]?.find,
    links: (entry === 'user' ? given['user.groups'] : given['group.members'])?.find,
    linkIds: entry === 'user' ? given['user.groupIds']?.find : undefined,
    attributes,
    aliases,
  }
}

const tokenForm = /^[\x21-\x7e]+$/

/** One kind of credentials, or none if requests are signed. */
function readCredentials(given: Given, report: ParameterReport): (readonly [string, string])[] {
  const { bearerToken, basicUser, basicPassword, apiKey, apiKeyHeader } = given
  const ways = (['bearerToken', 'basicUser', 'apiKey'] as const).filter((name) => given[name] !== undefined)
  const [first, second] = ways
  if (second !== undefined) report.error(second, `"${second}" cannot be given beside "${first}"`)
  if ((basicUser === undefined) !== (basicPassword === undefined)) {
    const missing = basicUser === undefined ? 'basicUser' : 'basicPassword'
    report.error(missing, '"basicUser" and "basicPassword" are required together')
  }
  if (basicUser?.includes(':')) report.error('basicUser', '"basicUser" must not hold a colon')
  for (const name of ['bearerToken', 'apiKey'] as const) {
    const value = given[name]
    if (value !== undefined && !tokenForm.test(value)) {
      report.error(name, `"${name}": the secret holds characters that no header can`)
    }
  }
  if (bearerToken !== undefined) return [['Authorization', `Bearer ${bearerToken}`]]
  if (apiKey !== undefined) return [[apiKeyHeader, apiKey]]
  if (basicUser === undefined) return []
  const pair = Buffer.from(`${basicUser}:${basicPassword ?? ''}`).toString('base64')
  return [['Authorization', `Basic ${pair}`]]
}

function readHeaders({ headers }: Given, report: ParameterReport): (readonly [string, string])[] {
  return headers.flatMap((header) => {
    const [place] = header.places
    if (place !== undefined) {
      report.error('headers', `"headers": there is no {${place}} here; they are the same for all requests`)
    }
    const value = header.render(() => undefined)
    return value === undefined ? [] : [[header.name, value] as const]
  })
}

type Given = ParsedParameters<typeof parameters>

const details = ['body', 'headers', 'items', 'total', 'next', 'status', 'notFound'] as const
const listOnly: ReadonlySet<string> = new Set(['total', 'next'])
const usuallyNotFound = [404, 410]

/** The requests with their details. Reports the position of details that don't fit. */
function readOperations(given: Given, report: ParameterReport): Operations {
  for (const detail of details) {
    for (const name of given[`<operation>.${detail}`].keys()) reportMisplaced(name, detail, given, report)
  }
  const found: Partial<Record<OperationName, Operation>> = {}
  for (const name of operationNames) {
    const request = given[name]
    if (request !== undefined) found[name] = readOperation(name, request, given, report)
  }
  return found
}

function reportMisplaced(name: string, detail: string, given: Given, report: ParameterReport): void {
  const at = `${name}.${detail}`
  if (!isOperation(name)) {
    report.error(
      at,
      `unknown parameter "${name}.${detail}": no request is called "${name}"${suggestion(name, operationNames)}`,
    )
  } else if (given[name] === undefined && !report.isSet(name)) {
    report.error(at, `"${name}.${detail}" belongs to "${name}", which is not there`)
  } else if (listOnly.has(detail) && kindOf(name).answer !== 'list') {
    report.error(at, `"${name}.${detail}": only a list has a ${detail}`)
  } else if (detail === 'items' && kindOf(name).answer === undefined) {
    report.error(at, `"${name}.items": nothing is read from the answer`)
  }
}

function readOperation(
  name: OperationName,
  request: RequestTemplate,
  given: Given,
  report: ParameterReport,
): Operation {
  const kind = kindOf(name)
  const body = given['<operation>.body'].get(name)
  const headers = given['<operation>.headers'].get(name) ?? []
  const statuses = given['<operation>.status'].get(name) ?? []
  const notFound = given['<operation>.notFound'].get(name) ?? []
  const known: readonly string[] = kind.places
  const check = (place: string, parameter: string): void => {
    if (known.includes(place)) return
    report.error(
      parameter,
      `"${parameter}": there is no {${place}} here${suggestion(place, known)}; there is ${known.map((p) => `{${p}}`).join(', ')}`,
    )
  }
  for (const place of request.places) check(place, name)
  for (const place of headers.flatMap(({ places }) => places)) check(place, `${name}.headers`)
  if (body !== undefined && kind.attributes === undefined) {
    for (const place of new Set(body.places.map((p) => p.name))) check(place, `${name}.body`)
  }
  if (body !== undefined && request.method === 'GET') {
    report.error(`${name}.body`, `"${name}.body": a GET request has no body`)
  }
  if (kind.answer === undefined && request.method === 'GET') {
    report.error(name, `"${name}": GET changes nothing; it must be POST, PUT, PATCH or DELETE`)
  }
  if (name === 'setPassword') reportPassword(request, headers, body, report)
  const written = given['<operation>.items'].get(name)
  return {
    name,
    request,
    headers,
    body,
    items: written?.find ?? compileJsonPath(kind.answer === 'list' ? '$[*]' : '$'),
    total: given['<operation>.total'].get(name)?.find,
    next: given['<operation>.next'].get(name)?.find,
    statuses: statuses.length === 0 ? undefined : new Set(statuses),
    notFound: new Set(notFound.length === 0 ? usuallyNotFound : notFound),
  }
}

/** Proxies log URLs and headers, so a password belongs in the body. */
function reportPassword(
  request: RequestTemplate,
  headers: readonly HeaderTemplate[],
  body: BodyTemplate | undefined,
  report: ParameterReport,
): void {
  if ([request, ...headers].some(({ places }) => places.includes('password'))) {
    report.error('setPassword', '"setPassword": {password} is allowed in the body only')
  }
  if (!body?.places.some(({ name }) => name === 'password')) {
    report.error('setPassword', '"setPassword.body" with a place for {password} is required')
  }
}

/** The requests that narrow a search; each has `{value}` and the placeholders of pages. */
function readNarrowings(search: 'searchUsers' | 'searchGroups', given: Given, report: ParameterReport): Narrowings {
  const narrowings = new Map<string, RequestTemplate>()
  for (const [attribute, request] of given[`${search}.by.<attribute>`]) {
    const parameter = `${search}.by.${attribute}`
    if (request === undefined) continue
    const known = ['value', ...kindOf(search).places]
    for (const place of request.places.filter((name) => !known.includes(name))) {
      report.error(parameter, `"${parameter}": there is no {${place}} here${suggestion(place, known)}`)
    }
    if (!request.places.includes('value')) report.error(parameter, `"${parameter}" needs a place for {value}`)
    if (given[search] === undefined)
      report.error(parameter, `"${parameter}" belongs to "${search}", which is not there`)
    narrowings.set(attribute.toLowerCase(), request)
  }
  return narrowings
}

/** Placeholders that need a path of the answers. */
const pathOfPlace = {
  id: 'user.id',
  groupId: 'group.id',
} as const

/** Reports requests that lack another request or a path. Returns the capabilities of the requests together. */
function checkOperations(operations: Operations, given: Given, report: ParameterReport): Capabilities {
  for (const operation of Object.values(operations)) checkPlaces(operation, operations, given, report)
  return {
    lookups: checkLookups(operations, given, report),
    groups: checkGroups(operations, given, report),
    memberships: checkMemberships(operations, given, report),
    renames: renames(operations),
    versions: keepsVersions(operations),
  }
}

function checkPlaces(operation: Operation, operations: Operations, given: Given, report: ParameterReport): void {
  const { name, body } = operation
  const kind = kindOf(name)
  for (const [place, parameter] of Object.entries(pathOfPlace)) {
    if (hasPlace(operation, place) && given[parameter as 'user.id'] === undefined) {
      report.error(name, `"${name}" uses {${place}}, so "${parameter}" is required`)
    }
  }
  const versionPath = name.includes('Group') ? 'group.version' : 'user.version'
  if (hasPlace(operation, 'version') && given[versionPath] === undefined) {
    report.error(name, `"${name}" uses {version}, so "${versionPath}" is required`)
  }
  const namesGroup = hasPlace(operation, 'group') || hasPlace(operation, 'groupId')
  if (namesGroup && name !== 'createGroup' && name !== 'addMember' && name !== 'removeMember') {
    if (given['group.name'] === undefined) report.error(name, `"${name}" needs "group.name"`)
  }
  if (hasPlace(operation, 'groupId') && name.endsWith('Member') && operations.findGroup === undefined) {
    report.error(name, `"${name}" uses {groupId}, so "findGroup" is required to find it`)
  }
  const { next, total, request } = operation
  const { places } = request
  const pages = ['offset', 'page', 'cursor'].filter((place) => places.includes(place))
  if (pages.length > 1) report.error(name, `"${name}": pages go by one of {${pages.join('}, {')}}`)
  if (places.includes('cursor') && next === undefined) {
    report.error(name, `"${name}" uses {cursor}, so "${name}.next" is required`)
  }
  if (next !== undefined && !places.includes('cursor')) {
    report.error(`${name}.next`, `"${name}.next" is of no use without {cursor} in "${name}"`)
  }
  if (total !== undefined && pages.length === 0) {
    report.error(`${name}.total`, `"${name}.total" is of no use without pages in "${name}"`)
  }
  if (kind.attributes === undefined) return
  const attributes = [...given[`${kind.attributes}.attribute.<name>`].keys()]
  const known = new Set(attributes.map((attribute) => attribute.toLowerCase()))
  const own: readonly string[] = kind.attributes === 'user' ? [...kind.places, 'groups'] : kind.places
  for (const place of new Set(body?.places.map((each) => each.name) ?? [])) {
    if (own.includes(place) || known.has(place.toLowerCase())) continue
    report.error(
      `${name}.body`,
      `"${name}.body" writes {${place}}${suggestion(place, [...own, ...attributes])}, so "${kind.attributes}.attribute.${place}" is required: what is written must be read as well`,
    )
  }
}

function checkLookups(operations: Operations, given: Given, report: ParameterReport): boolean {
  const optional: OperationName[] = ['searchUsers', 'searchGroups']
  const byId: OperationName[] = ['findUserById', 'findGroupById']
  const [first] = [...optional, ...byId].filter((name) => operations[name] !== undefined)
  if (first === undefined) return false
  const needed: OperationName[] = [
    ...optional,
    'findGroup',
    ...(given['user.id'] === undefined ? [] : (['findUserById'] as const)),
    ...(given['group.id'] === undefined ? [] : (['findGroupById'] as const)),
  ]
  const missing = needed.filter((name) => operations[name] === undefined && !report.isSet(name))
  for (const name of missing) {
    report.error(first, `look-ups need all of their requests: "${name}" is missing beside "${first}"`)
  }
  if (given['group.name'] === undefined) report.error(first, 'look-ups need "group.name"')
  if (operations.findUserById !== undefined && given['user.id'] === undefined) {
    report.error('findUserById', '"findUserById" is of no use without "user.id"')
  }
  if (operations.findGroupById !== undefined && given['group.id'] === undefined) {
    report.error('findGroupById', '"findGroupById" is of no use without "group.id"')
  }
  return missing.length === 0
}

function checkGroups(operations: Operations, given: Given, report: ParameterReport): boolean {
  const names: OperationName[] = ['createGroup', 'deleteGroup', 'updateGroup']
  const [first] = names.filter((name) => operations[name] !== undefined)
  if (first === undefined) return false
  const missing = (['createGroup', 'deleteGroup', 'findGroup'] as const).filter(
    (name) => operations[name] === undefined,
  )
  for (const name of missing.filter((each) => !report.isSet(each))) {
    report.error(first, `groups need "createGroup", "deleteGroup" and "findGroup": "${name}" is missing`)
  }
  if (given['group.name'] === undefined) report.error(first, `"${first}" needs "group.name"`)
  return missing.length === 0
}

function checkMemberships(
  { createUser, updateUser, addMember, removeMember, userGroups }: Operations,
  given: Given,
  report: ParameterReport,
): Capabilities['memberships'] {
  const inBodies = [createUser, updateUser].filter((operation) => operation && hasPlace(operation, 'groups'))
  const calls = [addMember, removeMember].filter((operation) => operation !== undefined)
  if (inBodies.length === 0 && calls.length === 0) return 'none'
  const at = inBodies[0] === undefined ? (calls[0]?.name ?? 'addMember') : `${inBodies[0].name}.body`
  if (inBodies.length === 1)
    report.error(at, 'memberships that go with the user need {groups*} in both createUser.body and updateUser.body')
  if (calls.length === 1) report.error(at, '"addMember" and "removeMember" are required together')
  if (inBodies.length > 0 && calls.length > 0) {
    report.error(at, 'memberships go with the user ({groups*}) or by "addMember" and "removeMember", not both')
  }
  if (given['user.groupIds'] !== undefined && given['user.groups'] === undefined) {
    report.error('user.groupIds', '"user.groupIds" needs "user.groups", whose order it has')
  }
  if (given['user.groups'] === undefined && userGroups === undefined) {
    report.error(
      at,
      'memberships can be changed only where they can be read: "user.groups" or "userGroups" is required',
    )
  }
  return inBodies.length > 0 ? 'body' : 'calls'
}

/** A user whose URL has the id can be renamed if the body contains the login. */
function renames({ updateUser }: Operations): boolean {
  if (updateUser === undefined || updateUser.request.places.includes('userID')) return false
  return updateUser.body?.places.some(({ name }) => name === 'userID') ?? false
}

/** Every configured change must be bound to the version. */
function keepsVersions({ updateUser, deleteUser, createGroup, updateGroup, deleteGroup }: Operations): boolean {
  const ofGroups = createGroup === undefined ? [] : [updateGroup, deleteGroup]
  return [updateUser, deleteUser, ...ofGroups].every((operation) => operation && hasPlace(operation, 'version'))
}

export default defineTarget<WebhookConfig>({
  className: 'targets.Webhook',
  parameters,
  parse: parseWebhook,
  lookups: ({ can }) => can.lookups,
  passwords: ({ operations }) => operations.setPassword !== undefined,
  storable: storedUserAttributes,
  /** Loaded on first use: a gateway without such a target is smaller and starts sooner. */
  create: async (config, host) => (await import('./webhook-target.ts')).openWebhookTarget(config, host),
})
