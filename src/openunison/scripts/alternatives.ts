import { nearestName } from '#kernel/suggest.ts'
import { servedType, servedTypes } from './java-inference.ts'

const signing = 'tokens come from an identity provider (a Trust) or the token service'
const statements = 'scripts only read databases, by createStatement().executeQuery(); tasks change targets'
const workflows = 'use getWorkFlow(name).executeWorkflow(call) in a workflow task'
const otherHttp = 'use java.net.http.HttpClient'

/** What to use instead of a type or package, by the beginning of its name. The longest beginning counts. */
const ofTypes: Readonly<Record<string, string>> = {
  'java.sql.': statements,
  'javax.sql.': statements,
  'java.io.InputStreamReader': 'use com.tremolosecurity.util.JSUtils',
  'java.io.ByteArrayInputStream': 'use com.tremolosecurity.util.JSUtils',
  'java.io.File': 'scripts have no files, so keep texts in the script or in a ConfigMap',
  'java.nio.file.': 'scripts have no files, so keep texts in the script or in a ConfigMap',
  'java.lang.Thread': 'scripts have no threads',
  'java.util.concurrent.': 'scripts have no threads, so use java.util.HashMap or java.util.ArrayList',
  'java.net.HttpURLConnection': otherHttp,
  'java.net.URL': 'use java.net.URI',
  'java.text.SimpleDateFormat': 'use org.joda.time.DateTime',
  'java.time.': 'use org.joda.time.DateTime',
  'java.util.Date': 'use org.joda.time.DateTime or JavaScript’s Date',
  'java.util.Arrays': 'use JavaScript arrays',
  'java.util.Collections': 'use JavaScript arrays',
  'java.util.TreeMap': 'use java.util.HashMap',
  'org.apache.http.': otherHttp,
  'org.apache.commons.io.': 'use com.tremolosecurity.util.JSUtils',
  'org.json.': 'use JSON.parse and JSON.stringify',
  'org.jose4j.': signing,
  'org.bouncycastle.': signing,
  'org.apache.logging.': 'use org.apache.log4j.Logger',
  'org.slf4j.': 'use org.apache.log4j.Logger',
  'com.novell.ldap.util.DN': 'compare names as texts',
  'com.tremolosecurity.idp.': signing,
  'com.tremolosecurity.config.xml.':
    'the configuration is not shown to scripts, so name what the script needs in a parameter',
  'com.tremolosecurity.provisioning.mapping.': 'use a JavaScriptMapping or auth.Mapping',
  'com.tremolosecurity.provisioning.service.util.': workflows,
  'com.tremolosecurity.k8s.util.PortalGroupMapper': 'read the groups of the user by getGroups()',
  'com.tremolosecurity.proxy.auth.util.AuthUtil': 'use MyVDConnection.search() and AuthController.setAuthInfo()',
  'jakarta.servlet.': 'use the request and the response that the function gets',
  'javax.servlet.': 'use the request and the response that the function gets',
}

/** What to use instead of a member: by `Type.member` with the type’s last name, or by the member alone. */
const ofMembers: Readonly<Record<string, string>> = {
  'ConfigManager.getCertificate': signing,
  'ConfigManager.getPrivateKey': signing,
  'Connection.prepareStatement': statements,
  'Statement.execute': statements,
  'Statement.executeUpdate': statements,
  'HttpSession.setAttribute': 'keep values in the map "globals", or in an attribute of the user',
  'HttpFilterRequest.addHeader': 'no request is forwarded, so add headers to the response',
  'HttpFilterRequest.getCookies': 'cookies are withheld from scripts',
  'HttpFilterResponse.addCookie': 'use addHeader("Set-Cookie", …)',
  'HttpServletResponse.sendRedirect':
    'a script accepts or rejects, and auth.OpenIDConnect and auth.FormLogin ask the user',
  'System.exit': 'return, or throw an exception',
  stream: 'use the methods of JavaScript arrays, such as map and filter',
}

const lastName = (type: string): string => type.split(/[.$]/).at(-1) ?? type

/** `; use …`, or nothing if there is no alternative. */
export function insteadOfType(type: string): string {
  const [, known] = longest(Object.entries(ofTypes).filter(([start]) => type.startsWith(start)))
  if (known !== undefined) return `; ${known}`
  const near = nearestName(
    lastName(type),
    servedTypes.map(({ name }) => lastName(name)),
  )
  const found = servedTypes.find(({ name }) => lastName(name) === near)
  return found === undefined ? '' : `; did you mean ${found.name}?`
}

/** `; use …`, or nothing if there is no alternative. */
export function insteadOfMember(type: string, member: string): string {
  const key = [`${lastName(type)}.${member}`, member].find((name) => Object.hasOwn(ofMembers, name))
  if (key !== undefined) return `; ${ofMembers[key]}`
  const { statics = [], methods = [] } = servedType(type) ?? {}
  const near = nearestName(member, [...statics, ...methods])
  return near === undefined ? '' : `; did you mean ${near}?`
}

const longest = (pairs: readonly (readonly [string, string])[]): readonly [string?, string?] =>
  pairs.reduce<readonly [string?, string?]>((best, pair) => (pair[0].length > (best[0]?.length ?? 0) ? pair : best), [])
