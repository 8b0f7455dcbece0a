import { ArrayList } from './array-list.ts'
import { Attribute } from './attribute.ts'
import { AuthInfo } from './auth-info.ts'
import { Base64, Decoder, Encoder } from './base64.ts'
import { Charset, StandardCharsets } from './bytes.ts'
import { Duration } from './duration.ts'
import { Group } from './group.ts'
import { HashMap, MapEntry } from './hash-map.ts'
import { HashSet } from './hash-set.ts'
import * as http from './http-client.ts'
import { BodyPublisher, BodyPublishers, HttpRequest, RequestBuilder } from './http-request.ts'
import { JavaEnum } from './java-enum.ts'
import * as exceptions from './java-exception.ts'
import { JavaIterator } from './java-iterator.ts'
import { Integer, JavaBoolean, Long } from './java-number.ts'
import { JavaString } from './java-string.ts'
import { JSUtils } from './js-utils.ts'
import { Filter, FilterNode, FilterType } from './ldap-filter.ts'
import { Logger } from './logger.ts'
import { Optional } from './optional.ts'
import {
  ConfigManager,
  GlobalEntries,
  ProvisioningEngine,
  ProvisioningUtil,
  Workflow,
  WorkflowTask,
} from './provisioning-engine.ts'
import { StringBuffer } from './string-buffer.ts'
import { PrintStream, System } from './system.ts'
import { URI, URLDecoder, URLEncoder } from './uri.ts'
import { User } from './user.ts'
import { UUID } from './uuid.ts'

/** A type that scripts may name. */
export interface JavaType {
  /** A class, or an object with static members. */
  readonly value: object
  /** `new` makes one. */
  readonly constructs: boolean
}

const made = (value: object): JavaType => ({ value, constructs: true })
const given = (value: object): JavaType => ({ value, constructs: false })

/** Every type that is served, by the name that Java has for it. */
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
  ['java.lang.Long', given(Long)],
  ['java.lang.Boolean', given(JavaBoolean)],
  ['java.net.URI', made(URI)],
  ['java.net.URLEncoder', given(URLEncoder)],
  ['java.net.URLDecoder', given(URLDecoder)],
  ['java.net.http.HttpClient', given(http.HttpClient)],
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
  ['com.tremolosecurity.saml.Attribute', made(Attribute)],
  ['com.tremolosecurity.server.GlobalEntries', given(GlobalEntries)],
  ['com.tremolosecurity.util.JSUtils', given(JSUtils)],
  ['net.sourceforge.myvd.types.Filter', made(Filter)],
  ['net.sourceforge.myvd.types.FilterType', given(FilterType)],
  ...Object.values(exceptions).map((type): [string, JavaType] => [type.javaName, made(type)]),
])

/** Types of what methods give, which no script names. */
export const namelessTypes: ReadonlyMap<string, JavaType> = new Map<string, JavaType>([
  ['java.util.Iterator', given(JavaIterator)],
  ['java.util.Map$Entry', given(MapEntry)],
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
  ['com.tremolosecurity.proxy.auth.AuthInfo', given(AuthInfo)],
  ['net.sourceforge.myvd.types.FilterNode', given(FilterNode)],
])
