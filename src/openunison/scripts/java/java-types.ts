import { matches } from '#identity/filter/evaluate.ts'
import type { LogLevel } from '#kernel/logger.ts'
import * as apache from './apache-http.ts'
import {
  Base64,
  type Bytes,
  bytesOf,
  Charset,
  Decoder,
  decodeText,
  Encoder,
  encodeText,
  fromBase64,
  StandardCharsets,
  signed,
  toBase64,
} from './bytes.ts'
import { AddPortalRolesToUserData, ClusterInfo } from './cluster-roles.ts'
import { ArrayList, JavaIterator } from './collections.ts'
import { AzSys, BasicDB, ProxyConstants, ProxySys } from './constants.ts'
import { DateTime, DateTimeZone, DateUtils, JavaDate } from './date-time.ts'
import { MyVDConnection, SearchAttribute, SearchEntry, SearchResults } from './directory-search.ts'
import { EncryptedMessage, readEncrypted } from './encryption.ts'
import { SetupGroupMetadataWatch } from './group-metadata.ts'
import { HashMap, HashSet, MapEntry } from './hash-map.ts'
import { askBridge, writeLog } from './host-bridge.ts'
import {
  ConfigManager,
  GlobalEntries,
  Logger,
  ProvisioningEngine,
  ProvisioningUtil,
  Workflow,
  WorkflowTask,
} from './host-objects.ts'
import * as http from './http-client.ts'
import { BodyPublisher, BodyPublishers, HttpRequest, RequestBuilder } from './http-client.ts'
import { Attribute, AuthInfo, Group, User } from './identity.ts'
import * as exceptions from './java-exception.ts'
import { IllegalArgumentException, NumberFormatException, UnsupportedOperationException } from './java-exception.ts'
import { Duration, JavaEnum, Optional, StringBuffer } from './java-lang.ts'
import { itemsOf, javaText, javaValue, optionalText, TextValue } from './java-value.ts'
import { JobDataMap, JobDetail, JobExecutionContext } from './job-context.ts'
import { Filter, FilterBuilder, FilterNode, FilterType, filterTree } from './ldap-filter.ts'
import { AuthChainType, AuthController, AuthManager, AuthStep, LoginConfig, RequestHolder, UrlHolder } from './login.ts'
import { NewUserRequest, ScaleJSRegisterConfig } from './registration.ts'
import {
  Enumeration,
  HttpFilterChain,
  HttpFilterConfig,
  HttpFilterRequest,
  HttpFilterResponse,
  HttpServletRequest,
  HttpServletResponse,
  HttpSession,
  OutputStream,
  PrintWriter,
} from './servlet.ts'
import { Connection, DataSource, ResultSet, Statement } from './sql.ts'
import {
  HttpCon,
  K8sUtils,
  OpenShiftTarget,
  ProvisioningTarget,
  ProvisioningType,
  TargetsType,
  TargetType,
  TremoloType,
  UserStoreProvider,
} from './targets.ts'
import { URI, URLDecoder, URLEncoder } from './uri.ts'
import { ProvisioningParams, TremoloUser, WFCall } from './workflow-call.ts'

/** java.lang.String. `new` returns an object with the text, since that is all JavaScript can return. */
export class JavaString {
  constructor(source?: unknown, charset?: unknown) {
    const plain = javaValue(source ?? '')
    // biome-ignore lint/correctness/noConstructorReturn: a text takes the place of the object
    return new String(typeof plain === 'object' ? decodeText(bytesOf(plain), charset) : javaText(plain))
  }

  static valueOf(value: unknown): string {
    return javaText(value)
  }

  static join(separator: unknown, ...parts: unknown[]): string {
    const [first] = parts
    const items = parts.length === 1 && typeof first === 'object' ? itemsOf(first) : parts
    return items.map(javaText).join(javaText(separator))
  }

  /** Supports `%s`, `%d`, `%n` and `%%`. */
  static format(template: unknown, ...values: unknown[]): string {
    return formatText(javaText(template), values)
  }
}

function formatText(template: string, values: readonly unknown[]): string {
  let used = 0
  return template.replace(/%(.?)/g, (form, letter: string) => {
    if (letter === '%') return '%'
    if (letter === 'n') return '\n'
    if (letter !== 's' && letter !== 'd') throw new IllegalArgumentException(`the format ${form} is not served`)
    if (used >= values.length) throw new IllegalArgumentException(`Format specifier '${form}'`)
    return javaText(values[used++])
  })
}

/** com.tremolosecurity.util.JSUtils. */
export const JSUtils = {
  string2bytes: (text: unknown): Bytes => signed(encodeText(javaText(text))),
  bytes2string: (bytes: unknown): string => decodeText(bytesOf(bytes)),
  base64Decode: (text: unknown): string => decodeText(fromBase64(javaText(text))),
  /** A format with each `%s` replaced by an encoded value, in order. */
  formEncode(template: unknown, ...values: unknown[]): BodyPublisher {
    const encoded = values.map((value) => URLEncoder.encode(value))
    return BodyPublishers.ofString(formatText(javaText(template), encoded))
  },

  checkUserAgainstFilter(user: unknown, memberOf: unknown, filter: unknown): boolean {
    if (!(user instanceof User)) throw new IllegalArgumentException('a User is needed')
    const entry = entryOf(user.getAttribs())
    entry.set('objectclass', ['inetOrgPerson'])
    entry.set(javaText(memberOf).toLowerCase(), user.getGroups().toArray().map(javaText))
    return check(entry, filter)
  },

  checkGroupAgainstFilter(group: unknown, filter: unknown): boolean {
    if (!(group instanceof Group)) throw new IllegalArgumentException('a Group is needed')
    const entry = entryOf(group.getAttributes())
    entry.set('cn', [group.getName() ?? ''])
    entry.set('objectclass', ['groupOfUniqueNames'])
    entry.set('uniquemember', group.getMembers().toArray().map(javaText))
    return check(entry, filter)
  },
}

function entryOf(attribs: HashMap): Map<string, readonly string[]> {
  const entry = new Map<string, readonly string[]>()
  for (const [name, attribute] of attribs) {
    if (attribute instanceof Attribute)
      entry.set(javaText(name).toLowerCase(), attribute.getValues().toArray().map(javaText))
  }
  return entry
}

const check = (entry: ReadonlyMap<string, readonly string[]>, filter: unknown): boolean =>
  matches(filterTree(javaText(filter)), { values: (name) => entry.get(name.toLowerCase()) ?? [] })

const maxInteger = 2_147_483_647

/** java.lang.Integer. */
export const Integer = {
  MAX_VALUE: maxInteger,
  MIN_VALUE: -2_147_483_648,

  parseInt: (source: unknown, radix: unknown = 10): number => wholeNumber(source, Number(radix), maxInteger),
  valueOf: (source: unknown): number => wholeNumber(source, 10, maxInteger),
  toString: (value: unknown): string => javaText(value),
}

/** java.lang.Long. Rejects numbers that JavaScript can't represent. */
export class Long extends Number {
  constructor(source: unknown) {
    super(Long.parseLong(source))
  }

  static parseLong(source: unknown): number {
    return wholeNumber(source, 10, Number.MAX_SAFE_INTEGER)
  }

  static override valueOf(source?: unknown): number {
    return Long.parseLong(source)
  }

  static override toString(value?: unknown): string {
    return javaText(value)
  }
}

/** java.lang.Boolean. */
const JavaBoolean = {
  TRUE: true,
  FALSE: false,

  parseBoolean: (source: unknown): boolean => javaText(source).toLowerCase() === 'true',
  valueOf: (source: unknown): boolean => JavaBoolean.parseBoolean(source),
}

function wholeNumber(source: unknown, radix: number, limit: number): number {
  const text = javaText(source)
  const digits = /^[+-]?[0-9a-z]+$/i.test(text) ? text.replace(/^[+-]/, '').toLowerCase() : ''
  const valid = digits !== '' && [...digits].every((digit) => Number.parseInt(digit, 36) < radix)
  const value = valid ? Number.parseInt(text, radix) : Number.NaN
  if (value <= limit && value >= -limit - 1) return value
  throw new NumberFormatException(`For input string: "${text}"`)
}

/** java.io.PrintStream, which writes to the log. */
class PrintStream {
  readonly #level: LogLevel

  constructor(level: LogLevel) {
    this.#level = level
  }

  println(value: unknown = ''): void {
    writeLog(this.#level, value)
  }

  print(value: unknown): void {
    writeLog(this.#level, value)
  }
}

/** java.lang.System. Has no properties, and nothing of the gateway's environment. */
const System = {
  out: new PrintStream('info'),
  err: new PrintStream('warn'),

  currentTimeMillis: (): number => Date.now(),
  getenv: (_name: unknown): null => null,
  getProperty: (_name: unknown, fallback: unknown = null): unknown => fallback,
  lineSeparator: (): string => '\n',
}

/** java.util.UUID. */
export class UUID extends TextValue {
  readonly #text: string

  constructor(text: string) {
    super()
    this.#text = text
  }

  static randomUUID(): UUID {
    return new UUID(javaText(askBridge('random', null)))
  }

  static fromString(source: unknown): UUID {
    const text = javaText(source).toLowerCase()
    if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) {
      throw new IllegalArgumentException(`Invalid UUID string: ${javaText(source)}`)
    }
    return new UUID(text)
  }

  override toString(): string {
    return this.#text
  }
}

/** org.apache.commons.codec.digest.DigestUtils, of a text in UTF-8 or of bytes. */
export const DigestUtils = {
  md5Hex: (source: unknown): string => digest('md5', source),
  sha1Hex: (source: unknown): string => digest('sha1', source),
  sha256Hex: (source: unknown): string => digest('sha256', source),
  sha512Hex: (source: unknown): string => digest('sha512', source),
}

function digest(algorithm: string, source: unknown): string {
  const plain = javaValue(source)
  const bytes = typeof plain === 'object' ? bytesOf(plain) : encodeText(javaText(plain))
  return javaText(askBridge('digest', { algorithm, bytes: toBase64(bytes) }))
}

/** com.google.gson.Gson: writes JSON. */
export class Gson {
  readonly #indent: number

  constructor(indent: unknown = 0) {
    this.#indent = Number(indent)
  }

  toJson(value: unknown): string {
    return JSON.stringify(javaValue(value), undefined, this.#indent)
  }

  /** For EncryptedMessage only. */
  fromJson(json: unknown, type: unknown): EncryptedMessage {
    if (type === EncryptedMessage) return readEncrypted(json)
    throw new UnsupportedOperationException('use JSON.parse')
  }
}

/** com.google.gson.GsonBuilder. */
export class GsonBuilder {
  #indent = 0

  setPrettyPrinting(): this {
    this.#indent = 2
    return this
  }

  create(): Gson {
    return new Gson(this.#indent)
  }
}

/** com.tremolosecurity.util.NVP. */
export class NVP {
  readonly #name: string | null
  readonly #value: string | null

  constructor(name: unknown, value: unknown) {
    this.#name = optionalText(name)
    this.#value = optionalText(value)
  }

  getName(): string | null {
    return this.#name
  }

  getValue(): string | null {
    return this.#value
  }
}

/** A type that scripts may name. */
export interface JavaType {
  /** A class, or an object with static members. */
  readonly value: object
  /** `new` creates one. */
  readonly constructs: boolean
}

const made = (value: object): JavaType => ({ value, constructs: true })
const given = (value: object): JavaType => ({ value, constructs: false })

/** Every supported type, by its Java name. */
export const javaTypes: ReadonlyMap<string, JavaType> = new Map<string, JavaType>([
  ['java.util.HashMap', made(HashMap)],
  ['java.util.LinkedHashMap', made(HashMap)],
  ['java.util.HashSet', made(HashSet)],
  ['java.util.LinkedHashSet', made(HashSet)],
  ['java.util.ArrayList', made(ArrayList)],
  ['java.util.LinkedList', made(ArrayList)],
  ['java.util.Base64', given(Base64)],
  ['java.util.UUID', given(UUID)],
  ['java.lang.System', given(System)],
  ['java.lang.String', made(JavaString)],
  ['java.lang.StringBuffer', made(StringBuffer)],
  ['java.lang.StringBuilder', made(StringBuffer)],
  ['java.lang.Integer', given(Integer)],
  ['java.lang.Long', made(Long)],
  ['java.lang.Boolean', given(JavaBoolean)],
  ['java.net.URI', made(URI)],
  ['java.net.URLEncoder', given(URLEncoder)],
  ['java.net.URLDecoder', given(URLDecoder)],
  ['java.net.http.HttpClient', given(http.HttpClient)],
  ['java.net.http.HttpClient$Redirect', given(http.HttpClient.Redirect)],
  ['java.net.http.HttpClient$Version', given(http.HttpClient.Version)],
  ['java.net.http.HttpRequest', given(HttpRequest)],
  ['java.net.http.HttpRequest$BodyPublishers', given(BodyPublishers)],
  ['java.net.http.HttpResponse', given(http.HttpResponse)],
  ['java.net.http.HttpResponse$BodyHandlers', given(http.BodyHandlers)],
  ['java.nio.charset.StandardCharsets', given(StandardCharsets)],
  ['java.time.Duration', given(Duration)],
  ['org.apache.log4j.Logger', given(Logger)],
  ['com.tremolosecurity.provisioning.core.User', made(User)],
  ['com.tremolosecurity.provisioning.core.Group', made(Group)],
  ['com.tremolosecurity.provisioning.core.ProvisioningUtil', given(ProvisioningUtil)],
  ['com.tremolosecurity.provisioning.core.ProvisioningUtil$ActionType', given(ProvisioningUtil.ActionType)],
  ['com.tremolosecurity.provisioning.core.ProvisioningParams', given(ProvisioningParams)],
  ['com.tremolosecurity.provisioning.core.providers.BasicDB', given(BasicDB)],
  ['com.tremolosecurity.provisioning.service.util.TremoloUser', made(TremoloUser)],
  ['com.tremolosecurity.provisioning.service.util.WFCall', made(WFCall)],
  ['com.tremolosecurity.k8s.util.K8sUtils', given(K8sUtils)],
  ['com.tremolosecurity.unison.openshiftv3.OpenShiftTarget', given(OpenShiftTarget)],
  ['com.tremolosecurity.provisioning.util.EncryptedMessage', given(EncryptedMessage)],
  ['com.tremolosecurity.proxy.ProxySys', given(ProxySys)],
  ['com.tremolosecurity.proxy.auth.AddPortalRolesToUserData', given(AddPortalRolesToUserData)],
  ['com.tremolosecurity.proxy.auth.AuthInfo', made(AuthInfo)],
  ['com.tremolosecurity.proxy.auth.AzSys', given(AzSys)],
  ['com.tremolosecurity.proxy.filters.SetupGroupMetadataWatch', given(SetupGroupMetadataWatch)],
  ['com.tremolosecurity.proxy.util.ProxyConstants', given(ProxyConstants)],
  ['com.tremolosecurity.saml.Attribute', made(Attribute)],
  ['com.tremolosecurity.server.GlobalEntries', given(GlobalEntries)],
  ['com.tremolosecurity.util.JSUtils', given(JSUtils)],
  ['com.tremolosecurity.util.NVP', made(NVP)],
  ['com.google.gson.Gson', made(Gson)],
  ['com.google.gson.GsonBuilder', made(GsonBuilder)],
  ['org.apache.commons.codec.digest.DigestUtils', given(DigestUtils)],
  ['org.apache.directory.api.util.DateUtils', given(DateUtils)],
  ['org.apache.directory.ldap.client.api.search.FilterBuilder', given(FilterBuilder)],
  ['org.apache.http.client.config.CookieSpecs', given(apache.CookieSpecs)],
  ['org.apache.http.client.config.RequestConfig', given(apache.RequestConfig)],
  ['org.apache.http.client.entity.UrlEncodedFormEntity', made(apache.UrlEncodedFormEntity)],
  ['org.apache.http.client.methods.HttpDelete', made(apache.HttpDelete)],
  ['org.apache.http.client.methods.HttpGet', made(apache.HttpGet)],
  ['org.apache.http.client.methods.HttpPatch', made(apache.HttpPatch)],
  ['org.apache.http.client.methods.HttpPost', made(apache.HttpPost)],
  ['org.apache.http.client.methods.HttpPut', made(apache.HttpPut)],
  ['org.apache.http.entity.StringEntity', made(apache.StringEntity)],
  ['org.apache.http.impl.client.HttpClients', given(apache.HttpClients)],
  ['org.apache.http.impl.conn.BasicHttpClientConnectionManager', made(apache.ConnectionManager)],
  ['org.apache.http.message.BasicHeader', made(apache.NameValue)],
  ['org.apache.http.message.BasicNameValuePair', made(apache.NameValue)],
  ['org.apache.http.util.EntityUtils', given(apache.EntityUtils)],
  ['org.joda.time.DateTime', made(DateTime)],
  ['org.joda.time.DateTimeZone', given(DateTimeZone)],
  ['net.sourceforge.myvd.types.Filter', made(Filter)],
  ['net.sourceforge.myvd.types.FilterType', given(FilterType)],
  ...Object.values(exceptions).map((type): [string, JavaType] => [type.javaName, made(type)]),
])

/** Result types of methods, which no script names. */
export const namelessTypes: ReadonlyMap<string, JavaType> = new Map<string, JavaType>([
  ['java.util.Iterator', given(JavaIterator)],
  ['java.util.Map$Entry', given(MapEntry)],
  ['java.util.Date', given(JavaDate)],
  ['java.util.Optional', given(Optional)],
  ['java.util.Base64$Encoder', given(Encoder)],
  ['java.util.Base64$Decoder', given(Decoder)],
  ['java.io.PrintStream', given(PrintStream)],
  ['java.lang.Enum', given(JavaEnum)],
  ['java.nio.charset.Charset', given(Charset)],
  ['java.net.http.HttpClient$Builder', given(http.ClientBuilder)],
  ['java.net.http.HttpRequest$Builder', given(RequestBuilder)],
  ['java.net.http.HttpRequest$BodyPublisher', given(BodyPublisher)],
  ['java.net.http.HttpResponse$BodyHandler', given(http.BodyHandler)],
  ['java.net.http.HttpHeaders', given(http.HttpHeaders)],
  ['com.tremolosecurity.config.util.ConfigManager', given(ConfigManager)],
  ['com.tremolosecurity.provisioning.core.ProvisioningEngine', given(ProvisioningEngine)],
  ['com.tremolosecurity.provisioning.core.Workflow', given(Workflow)],
  ['com.tremolosecurity.provisioning.core.WorkflowTask', given(WorkflowTask)],
  ['com.tremolosecurity.provisioning.core.ProvisioningTarget', given(ProvisioningTarget)],
  ['com.tremolosecurity.provisioning.core.UserStoreProvider', given(UserStoreProvider)],
  ['com.tremolosecurity.provisioning.util.HttpCon', given(HttpCon)],
  ['org.quartz.JobDataMap', given(JobDataMap)],
  ['org.quartz.JobDetail', given(JobDetail)],
  ['org.quartz.JobExecutionContext', given(JobExecutionContext)],
  ['com.tremolosecurity.config.util.UrlHolder', given(UrlHolder)],
  ['com.tremolosecurity.myvd.dataObj.ClusterInfo', given(ClusterInfo)],
  ['com.tremolosecurity.config.xml.AuthChainType', given(AuthChainType)],
  ['com.tremolosecurity.config.xml.ProvisioningType', given(ProvisioningType)],
  ['com.tremolosecurity.config.xml.TargetType', given(TargetType)],
  ['com.tremolosecurity.config.xml.TargetsType', given(TargetsType)],
  ['com.tremolosecurity.config.xml.TremoloType', given(TremoloType)],
  ['com.tremolosecurity.scalejs.register.cfg.ScaleJSRegisterConfig', given(ScaleJSRegisterConfig)],
  ['com.tremolosecurity.scalejs.register.data.NewUserRequest', given(NewUserRequest)],
  ['com.tremolosecurity.proxy.auth.AuthController', given(AuthController)],
  ['com.tremolosecurity.proxy.auth.RequestHolder', given(RequestHolder)],
  ['com.tremolosecurity.proxy.auth.sys.AuthManager', given(AuthManager)],
  ['com.tremolosecurity.proxy.auth.sys.LoginConfig', given(LoginConfig)],
  ['com.tremolosecurity.proxy.auth.util.AuthStep', given(AuthStep)],
  ['com.tremolosecurity.proxy.filter.HttpFilterChain', given(HttpFilterChain)],
  ['com.tremolosecurity.proxy.filter.HttpFilterConfig', given(HttpFilterConfig)],
  ['com.tremolosecurity.proxy.filter.HttpFilterRequest', given(HttpFilterRequest)],
  ['com.tremolosecurity.proxy.filter.HttpFilterResponse', given(HttpFilterResponse)],
  ['com.tremolosecurity.proxy.myvd.MyVDConnection', given(MyVDConnection)],
  ['com.novell.ldap.LDAPAttribute', given(SearchAttribute)],
  ['com.novell.ldap.LDAPEntry', given(SearchEntry)],
  ['com.novell.ldap.LDAPSearchResults', given(SearchResults)],
  ['java.sql.Connection', given(Connection)],
  ['java.sql.ResultSet', given(ResultSet)],
  ['java.sql.Statement', given(Statement)],
  ['javax.sql.DataSource', given(DataSource)],
  ['jakarta.servlet.http.HttpServletRequest', given(HttpServletRequest)],
  ['jakarta.servlet.http.HttpServletResponse', given(HttpServletResponse)],
  ['jakarta.servlet.http.HttpSession', given(HttpSession)],
  ['java.io.OutputStream', given(OutputStream)],
  ['org.apache.http.HttpEntity', given(apache.Entity)],
  ['org.apache.http.HttpResponse', given(apache.ApacheResponse)],
  ['org.apache.http.StatusLine', given(apache.StatusLine)],
  ['org.apache.http.impl.client.CloseableHttpClient', given(apache.CloseableHttpClient)],
  ['org.apache.http.impl.client.HttpClientBuilder', given(apache.HttpClientBuilder)],
  ['java.io.PrintWriter', given(PrintWriter)],
  ['java.util.Enumeration', given(Enumeration)],
  ['net.sourceforge.myvd.types.FilterNode', given(FilterNode)],
])
