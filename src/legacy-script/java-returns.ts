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

const builds = (type: string, ...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, type]))

/** The types of what members give, where a script that uses them can be checked further. */
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
  [manager]: { getProvisioningEngine: `${core}.ProvisioningEngine` },
  [`${core}.WorkflowTask`]: { getConfigManager: manager },
  'com.tremolosecurity.proxy.auth.AuthInfo': { getAttribs: map },
  [`${filters}.Filter`]: { getRoot: `${filters}.FilterNode`, listNodes: list },
  [`${filters}.FilterNode`]: { getNot: `${filters}.FilterNode`, getChildren: list, getType: 'java.lang.Enum' },
}

const same: Readonly<Record<string, string>> = {
  'java.util.LinkedHashMap': map,
  'java.util.LinkedHashSet': set,
  'java.util.LinkedList': list,
  'java.lang.StringBuilder': buffer,
}

/** Undefined when it is not known, or not an object of Java. */
export function returnedType(type: string, member: string): string | undefined {
  const members = returns[same[type] ?? type] ?? {}
  return Object.hasOwn(members, member) ? members[member] : undefined
}
