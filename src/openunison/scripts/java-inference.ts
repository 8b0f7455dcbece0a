import type { AnyNode } from 'acorn'
import { typeName } from '#openunison/scripts/java/java-name.ts'
import { type JavaType, javaTypes, namelessTypes } from '#openunison/scripts/java/java-types.ts'
import { packageRoots } from '#openunison/scripts/runtime/java-global.ts'
import type { LegacyParameter, LegacySignatures } from './legacy-signatures.ts'
import { isFunction, type Scope, type ScopedNode, type Variable, variableOf } from './script-scopes.ts'

const list = 'java.util.ArrayList'
const map = 'java.util.HashMap'
const set = 'java.util.HashSet'
const iterator = 'java.util.Iterator'
const buffer = 'java.lang.StringBuffer'
const uri = 'java.net.URI'
const client = 'java.net.http.HttpClient'
const request = 'java.net.http.HttpRequest'
const response = 'java.net.http.HttpResponse'
const core = 'com.tremolosecurity.provisioning.core'
const manager = 'com.tremolosecurity.config.util.ConfigManager'
const filters = 'net.sourceforge.myvd.types'
const filter = 'com.tremolosecurity.proxy.filter'
const auth = 'com.tremolosecurity.proxy.auth'
const servlet = 'jakarta.servlet.http'
const register = 'com.tremolosecurity.scalejs.register'
const ldap = 'com.novell.ldap'
const dateTime = 'org.joda.time.DateTime'
const apache = 'org.apache.http'

const builds = (type: string, ...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, type]))

/** The result types of members, for further checks of a script that uses them. */
const returns: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [list]: { iterator, subList: list },
  [set]: { iterator },
  [map]: { keySet: set, values: list, entrySet: set },
  'java.util.Base64': {
    ...builds('java.util.Base64$Encoder', 'getEncoder', 'getUrlEncoder'),
    ...builds('java.util.Base64$Decoder', 'getDecoder', 'getUrlDecoder', 'getMimeDecoder'),
  },
  'java.util.Base64$Encoder': { withoutPadding: 'java.util.Base64$Encoder' },
  'java.util.UUID': builds('java.util.UUID', 'randomUUID', 'fromString'),
  'java.lang.System': builds('java.io.PrintStream', 'out', 'err'),
  [buffer]: builds(buffer, 'append', 'insert', 'deleteCharAt', 'reverse'),
  [uri]: { create: uri },
  'java.time.Duration': builds('java.time.Duration', 'ofMillis', 'ofSeconds', 'ofMinutes'),
  [client]: { newHttpClient: client, newBuilder: `${client}$Builder`, send: response },
  [`${client}$Builder`]: {
    ...builds(`${client}$Builder`, 'followRedirects', 'connectTimeout', 'version'),
    build: client,
  },
  [request]: { newBuilder: `${request}$Builder`, uri },
  [`${request}$Builder`]: {
    ...builds(`${request}$Builder`, 'uri', 'header', 'headers', 'setHeader', 'timeout', 'version'),
    ...builds(`${request}$Builder`, 'GET', 'DELETE', 'POST', 'PUT', 'method'),
    build: request,
  },
  [response]: { headers: 'java.net.http.HttpHeaders', uri },
  'java.net.http.HttpHeaders': { firstValue: 'java.util.Optional', allValues: list, map },
  'org.apache.log4j.Logger': { getLogger: 'org.apache.log4j.Logger' },
  [`${core}.User`]: { getAttribs: map, getGroups: list },
  [`${core}.Group`]: { getMembers: list, getAttributes: map },
  'com.tremolosecurity.saml.Attribute': { getValues: list },
  'com.tremolosecurity.server.GlobalEntries': {
    getGlobalEntries: 'com.tremolosecurity.server.GlobalEntries',
    getConfigManager: manager,
  },
  'com.tremolosecurity.config.xml.TremoloType': { getProvisioning: 'com.tremolosecurity.config.xml.ProvisioningType' },
  'com.tremolosecurity.config.xml.ProvisioningType': { getTargets: 'com.tremolosecurity.config.xml.TargetsType' },
  'com.tremolosecurity.config.xml.TargetsType': { getTarget: list },
  [manager]: {
    getCfg: 'com.tremolosecurity.config.xml.TremoloType',
    getProvisioningEngine: `${core}.ProvisioningEngine`,
    getMyVD: 'com.tremolosecurity.proxy.myvd.MyVDConnection',
  },
  [`${core}.ProvisioningEngine`]: {
    getTarget: `${core}.ProvisioningTarget`,
    getWorkFlow: `${core}.Workflow`,
    encryptObject: 'com.tremolosecurity.provisioning.util.EncryptedMessage',
  },
  'org.apache.directory.api.util.DateUtils': { convertIntervalDate: 'java.util.Date' },
  'com.tremolosecurity.provisioning.service.util.TremoloUser': builds(list, 'getAttributes', 'getGroups'),
  'com.tremolosecurity.provisioning.service.util.WFCall': {
    getUser: 'com.tremolosecurity.provisioning.service.util.TremoloUser',
    getRequestParams: map,
  },
  [`${core}.ProvisioningTarget`]: { getProvider: `${core}.UserStoreProvider`, findUser: `${core}.User` },
  [`${core}.UserStoreProvider`]: {
    createClient: 'com.tremolosecurity.provisioning.util.HttpCon',
    getDS: 'javax.sql.DataSource',
    findUser: `${core}.User`,
  },
  'javax.sql.DataSource': { getConnection: 'java.sql.Connection' },
  'java.sql.Connection': { createStatement: 'java.sql.Statement' },
  'java.sql.Statement': { executeQuery: 'java.sql.ResultSet' },
  'com.tremolosecurity.provisioning.util.HttpCon': {
    getHttp: `${apache}.impl.client.CloseableHttpClient`,
    getBcm: `${apache}.impl.conn.BasicHttpClientConnectionManager`,
  },
  [`${apache}.impl.client.HttpClients`]: {
    createDefault: `${apache}.impl.client.CloseableHttpClient`,
    custom: `${apache}.impl.client.HttpClientBuilder`,
  },
  [`${apache}.impl.client.HttpClientBuilder`]: {
    ...builds(`${apache}.impl.client.HttpClientBuilder`, 'setConnectionManager', 'setDefaultRequestConfig'),
    build: `${apache}.impl.client.CloseableHttpClient`,
  },
  [`${apache}.client.config.RequestConfig`]: builds(
    `${apache}.client.config.RequestConfig`,
    ...['custom', 'setCookieSpec', 'build'],
  ),
  [`${apache}.impl.client.CloseableHttpClient`]: { execute: `${apache}.HttpResponse` },
  [`${apache}.HttpResponse`]: {
    getStatusLine: `${apache}.StatusLine`,
    getEntity: `${apache}.HttpEntity`,
    getFirstHeader: `${apache}.message.BasicHeader`,
  },
  'com.tremolosecurity.k8s.util.K8sUtils': builds(map, 'loadConfigMap', 'loadSecret'),
  'org.quartz.JobExecutionContext': { getJobDetail: 'org.quartz.JobDetail' },
  'org.quartz.JobDetail': { getJobDataMap: 'org.quartz.JobDataMap' },
  'com.tremolosecurity.proxy.filters.SetupGroupMetadataWatch': { getK8s: list },
  [`${core}.WorkflowTask`]: { getConfigManager: manager, getWorkflow: `${core}.Workflow` },
  [`${core}.Workflow`]: builds(`${core}.User`, 'getRequester', 'getUser'),
  'com.tremolosecurity.proxy.myvd.MyVDConnection': { search: `${ldap}.LDAPSearchResults` },
  [`${ldap}.LDAPSearchResults`]: { next: `${ldap}.LDAPEntry` },
  [`${ldap}.LDAPEntry`]: { getAttribute: `${ldap}.LDAPAttribute`, getAttributeSet: set },
  [`${auth}.AuthInfo`]: { getAttribs: map },
  [`${register}.cfg.ScaleJSRegisterConfig`]: { getCustomSubmissionConfig: map },
  [`${register}.data.NewUserRequest`]: { getAttributes: map },
  [`${auth}.AuthController`]: { getAuthInfo: `${auth}.AuthInfo`, getHolder: `${auth}.RequestHolder` },
  'com.tremolosecurity.config.util.UrlHolder': { getConfig: `${auth}.sys.LoginConfig` },
  [`${auth}.sys.LoginConfig`]: {
    getAuthManager: `${auth}.sys.AuthManager`,
    getAuthChains: map,
    getProvisioningEngine: `${core}.ProvisioningEngine`,
    getMyVD: 'com.tremolosecurity.proxy.myvd.MyVDConnection',
  },
  [`${filter}.HttpFilterConfig`]: { getConfigManager: manager, getAttributeNames: set },
  [`${filter}.HttpFilterRequest`]: {
    getAuthInfo: `${auth}.AuthInfo`,
    getSession: `${servlet}.HttpSession`,
    getRequestURL: buffer,
    ...builds(iterator, 'getHeaderNames', 'getParameterNames'),
    ...builds('com.tremolosecurity.saml.Attribute', 'getHeader', 'getParameter'),
  },
  [`${filter}.HttpFilterResponse`]: {
    getHeader: 'com.tremolosecurity.saml.Attribute',
    getWriter: 'java.io.PrintWriter',
    getOutputStream: 'java.io.OutputStream',
  },
  'java.io.PrintWriter': { append: 'java.io.PrintWriter' },
  [`${servlet}.HttpServletRequest`]: {
    getSession: `${servlet}.HttpSession`,
    getRequestURL: buffer,
    getHeaderNames: 'java.util.Enumeration',
  },
  'com.tremolosecurity.myvd.dataObj.ClusterInfo': { getNamespaces: map },
  'com.google.gson.GsonBuilder': { setPrettyPrinting: 'com.google.gson.GsonBuilder', create: 'com.google.gson.Gson' },
  'org.apache.directory.ldap.client.api.search.FilterBuilder': builds(
    `${filters}.FilterNode`,
    ...['equal', 'greaterThanOrEqual', 'lessThanOrEqual', 'present', 'and', 'or', 'not'],
  ),
  [dateTime]: builds(
    dateTime,
    ...['now', 'parse', 'withZone', 'plusSeconds', 'plusMinutes', 'plusHours', 'plusDays'],
    ...['minusSeconds', 'minusMinutes', 'minusHours', 'minusDays'],
  ),
  [`${filters}.Filter`]: { getRoot: `${filters}.FilterNode`, listNodes: list },
  [`${filters}.FilterNode`]: { getNot: `${filters}.FilterNode`, getChildren: list, getType: 'java.lang.Enum' },
}

const same: Readonly<Record<string, string>> = {
  'java.util.LinkedHashMap': map,
  'org.quartz.JobDataMap': map,
  'java.util.LinkedHashSet': set,
  'java.util.LinkedList': list,
  'java.lang.StringBuilder': buffer,
}

/** Undefined if it is not known, or not a Java object. */
export function returnedType(type: string, member: string): string | undefined {
  const members = returns[same[type] ?? type] ?? {}
  return Object.hasOwn(members, member) ? members[member] : undefined
}

/** What is known of a value before the script runs. */
export interface JavaFact {
  readonly is: 'class' | 'instance' | 'package' | 'unserved'
  /** The name of the type or the package. */
  readonly name: string
}

type Infer = (node: AnyNode, scope: Scope) => JavaFact | undefined

const maxRounds = 6
const maxDepth = 500

/** The Java type of a parameter that the gateway creates. */
const parameterTypes: Readonly<Partial<Record<LegacyParameter['kind'], string>>> = {
  user: 'com.tremolosecurity.provisioning.core.User',
  requestor: 'com.tremolosecurity.provisioning.core.User',
  set: 'java.util.HashSet',
  attributes: 'java.util.HashMap',
  textMap: 'java.util.HashMap',
  request: 'java.util.HashMap',
  taskRequest: 'java.util.HashMap',
  subject: 'com.tremolosecurity.proxy.auth.AuthInfo',
  manager: 'com.tremolosecurity.config.util.ConfigManager',
  task: 'com.tremolosecurity.provisioning.core.WorkflowTask',
  jobContext: 'org.quartz.JobExecutionContext',
  filterConfig: `${filter}.HttpFilterConfig`,
  filterRequest: `${filter}.HttpFilterRequest`,
  filterResponse: `${filter}.HttpFilterResponse`,
  filterChain: `${filter}.HttpFilterChain`,
  loginRequest: `${servlet}.HttpServletRequest`,
  loginResponse: `${servlet}.HttpServletResponse`,
  loginStep: `${auth}.util.AuthStep`,
  registerConfig: `${register}.cfg.ScaleJSRegisterConfig`,
  callerRequest: `${servlet}.HttpServletRequest`,
  newUser: `${register}.data.NewUserRequest`,
  list,
  map,
}

/** A variable has a type if every value assigned to it has that type. */
export function inferJava(nodes: readonly ScopedNode[], signatures: LegacySignatures): Infer {
  const scopes = new Set(nodes.map(({ scope }) => scope))
  let facts = new Map<Variable, JavaFact>()
  const parameters = parameterFacts(scopes, signatures)
  const globals = globalFacts(signatures)
  const infer: Infer = (node, scope) =>
    factOf(node, scope, { of: (variable) => parameters.get(variable) ?? facts.get(variable), globals }, 0)
  for (let round = 0; round < maxRounds; round++) {
    const next = new Map<Variable, JavaFact>()
    for (const scope of scopes) {
      for (const variable of scope.variables.values()) {
        const [first, ...others] = variable.values.map((value) =>
          value === undefined ? undefined : infer(value.node, value.scope),
        )
        if (first !== undefined && others.every((other) => isSame(first, other))) next.set(variable, first)
      }
    }
    const settled = next.size === facts.size && [...next].every(([variable, fact]) => isSame(fact, facts.get(variable)))
    facts = next
    if (settled) break
  }
  return infer
}

/** Parameters of the functions that the gateway calls, if nothing is assigned to them. */
function parameterFacts(scopes: Iterable<Scope>, signatures: LegacySignatures): Map<Variable, JavaFact> {
  const facts = new Map<Variable, JavaFact>()
  for (const { node, parent, variables } of scopes) {
    if (!isFunction(node) || parent?.parent !== undefined || node.type !== 'FunctionDeclaration') continue
    const called = node.id?.name ?? ''
    if (!Object.hasOwn(signatures, called)) continue
    for (const [i, { kind }] of (signatures[called] ?? []).entries()) {
      const [given, name] = [node.params[i], parameterTypes[kind]]
      if (given?.type !== 'Identifier' || name === undefined) continue
      const variable = variables.get(given.name)
      if (variable?.values.length === 1) facts.set(variable, { is: 'instance', name })
    }
  }
  return facts
}

/** A task's script finds its task in a global of that name too. */
function globalFacts(signatures: LegacySignatures): ReadonlyMap<string, JavaFact> {
  const isTask = Object.values(signatures).some((given) => given.some(({ kind }) => kind === 'taskRequest'))
  return new Map(isTask ? [['task', { is: 'instance', name: `${core}.WorkflowTask` }]] : [])
}

interface KnownFacts {
  of(variable: Variable): JavaFact | undefined
  readonly globals: ReadonlyMap<string, JavaFact>
}

const isSame = (one: JavaFact, other: JavaFact | undefined): boolean => one.is === other?.is && one.name === other.name

function factOf(node: AnyNode, scope: Scope, known: KnownFacts, depth: number): JavaFact | undefined {
  if (depth > maxDepth) return undefined
  const inner = (below: AnyNode) => factOf(below, scope, known, depth + 1)
  switch (node.type) {
    case 'Identifier': {
      const variable = variableOf(node.name, scope)
      return variable === undefined ? (known.globals.get(node.name) ?? packageNamed(node.name)) : known.of(variable)
    }
    case 'ChainExpression':
      return inner(node.expression)
    case 'AssignmentExpression':
      return inner(node.right)
    case 'NewExpression': {
      const made = inner(node.callee)
      return made?.is === 'class' ? { is: 'instance', name: made.name } : undefined
    }
    case 'MemberExpression': {
      const name = memberName(node)
      const of = node.object.type === 'Super' || name === undefined ? undefined : inner(node.object)
      return of === undefined || name === undefined ? undefined : memberFact(of, name)
    }
    case 'CallExpression': {
      const loaded = loadedType(node, scope)
      if (loaded !== undefined) return typeNamed(loaded)
      return node.callee.type === 'MemberExpression' ? inner(node.callee) : undefined
    }
    default:
      return undefined
  }
}

/** The name in `Java.type('name')`; undefined for another call or a computed name. */
export function loadedType(node: AnyNode, scope: Scope): string | undefined {
  if (node.type !== 'CallExpression' || javaMember(node.callee, scope) !== 'type') return undefined
  const [name] = node.arguments
  return name?.type === 'Literal' && typeof name.value === 'string' ? typeName(name.value) : undefined
}

/** The member of the global `Java` that is used. */
export function javaMember(node: AnyNode, scope: Scope): string | undefined {
  if (node.type !== 'MemberExpression' || node.object.type !== 'Identifier' || node.object.name !== 'Java')
    return undefined
  return variableOf('Java', scope) === undefined ? memberName(node) : undefined
}

export function memberName(node: Extract<AnyNode, { type: 'MemberExpression' }>): string | undefined {
  const { property, computed } = node
  if (!computed) return property.type === 'Identifier' ? property.name : undefined
  return property.type === 'Literal' && typeof property.value === 'string' ? property.value : undefined
}

/** The result of a member, called or not. */
function memberFact({ is, name }: JavaFact, member: string): JavaFact | undefined {
  if (is === 'package') {
    const path = name === '' ? member : `${name}.${member}`
    return /^[A-Z]/.test(member) ? typeNamed(path) : { is: 'package', name: path }
  }
  if (is === 'unserved') return undefined
  if (is === 'class' && canBeNamed(`${name}$${member}`)) return { is: 'class', name: `${name}$${member}` }
  const type = returnedType(name, member)
  return type === undefined ? undefined : { is: 'instance', name: type }
}

const typeNamed = (name: string): JavaFact => ({ is: canBeNamed(name) ? 'class' : 'unserved', name })

function packageNamed(name: string): JavaFact | undefined {
  if (name === 'Packages') return { is: 'package', name: '' }
  return packageRoots.some((root) => root === name) ? { is: 'package', name } : undefined
}

/** What scripts may use of a type. */
export interface ServedType {
  readonly name: string
  readonly constructs: boolean
  readonly statics: readonly string[]
  readonly methods: readonly string[]
  /** Its lists also work like arrays. */
  readonly isArray: boolean
}

/** Members of JavaScript or of the runtime. */
const hiddenStatics = new Set(['length', 'name', 'prototype', 'javaName'])
const hiddenMethods = new Set(['constructor', 'toJSON', 'removeItem', 'javaName'])
const ends: ReadonlySet<object> = new Set<object>([
  ...[Function.prototype, Object.prototype, Error, Error.prototype, Number, Number.prototype],
])

function describe([name, { value, constructs }]: readonly [string, JavaType]): ServedType {
  return {
    name,
    constructs,
    statics: namesOf(value, typeof value === 'function' ? hiddenStatics : new Set()),
    methods: typeof value === 'function' ? namesOf(value.prototype, hiddenMethods) : [],
    isArray: /\.(?:ArrayList|LinkedList)$/.test(name),
  }
}

/** The object's own and inherited names, except those that JavaScript gives to all. */
function namesOf(object: object, hidden: ReadonlySet<string>): string[] {
  const names: string[] = []
  for (let at: object | null = object; at !== null && !ends.has(at); at = Object.getPrototypeOf(at)) {
    names.push(...Object.getOwnPropertyNames(at).filter((name) => !hidden.has(name)))
  }
  return [...new Set(names)].sort()
}

const all = new Map([...javaTypes, ...namelessTypes].map((entry) => [entry[0], describe(entry)]))

/** The types that scripts may name, sorted by name. */
export const servedTypes: readonly ServedType[] = [...javaTypes.keys()].sort().flatMap((name) => all.get(name) ?? [])

/** The result types of methods. */
export const givenTypes: readonly ServedType[] = [...namelessTypes.keys()].sort().flatMap((name) => all.get(name) ?? [])

/** Includes those that no script can name. */
export const servedType = (name: string): ServedType | undefined => all.get(name)

const canBeNamed = (name: string): boolean => javaTypes.has(name)
