import { Attributes, isDeactivated } from '#identity/attributes.ts'
import { directoryLink } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { shownAttributes } from '#identity/shown-attributes.ts'
import type { Subject } from '#identity/subject.ts'
import type { JsonValue } from '#kernel/json.ts'
import { type LegacySignatures, parameter } from '#openunison/scripts/legacy-signatures.ts'
import type { AuthHost, AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { list, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { failClosed } from '#sdk/plugin/fail-closed.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { legacyParameters, openPlugin, type PluginCode, readLegacyCode } from '#sdk/plugin/plugin-code.ts'
import { maxBodyKilobytes, plainRequest, plainSubject } from '#sdk/plugin/plugin-request.ts'
import type { PluginRequest } from '#sdk/plugin/plugin-types.ts'

const functionName = 'doAuth'

/** How OpenUnison calls it. */
const signatures: LegacySignatures = {
  [functionName]: [parameter('loginRequest'), parameter('loginResponse'), parameter('loginStep')],
}

const parameters = {
  ...legacyParameters('js'),
  '<name>': list({
    about:
      "Any other parameter of the chain's entry, and of its `secretParams`, is in `AUTH_MECH_PARAMS` of the session.",
  }),
  uidAttr: text({ about: 'The attribute of a directory entry whose first value is the login.', fallback: 'uid' }),
  maxBodyKilobytes: maxBodyKilobytes(0),
}

interface JavaScriptAuthConfig {
  readonly code: PluginCode
  readonly uidAttr: string
  readonly maxBodyBytes: number
}

/**
 * A mechanism in OpenUnison's JavaScript. The script changes attributes of the user that earlier mechanisms established,
 * or names an entry of the directory as the user. It accepts by `setSuccess(true)` and `nextAuth`; anything else rejects.
 */
export default defineAuthMechanism<JavaScriptAuthConfig>({
  className: 'auth.JavaScriptAuth',
  aliases: ['com.tremolosecurity.proxy.auth.JavaScriptAuth'],
  parameters,
  parse: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    return {
      code: readLegacyCode(
        values,
        { name: 'js', inline: values.js, signatures },
        Object.keys(parameters),
        params,
        issues,
        context,
      ),
      uidAttr: values.uidAttr,
      maxBodyBytes: values.maxBodyKilobytes * 1024,
    }
  },
  create: openJavaScriptAuth,
})

async function openJavaScriptAuth(
  { code, uidAttr, maxBodyBytes }: JavaScriptAuthConfig,
  host: AuthHost,
): Promise<AuthMechanism> {
  const plugin = await openPlugin(code, host, {
    name: `the JavaScript mechanism "${host.name}"`,
    functions: [functionName],
    required: [functionName],
  })

  async function run(request: PluginRequest, subject: Subject | undefined): Promise<AuthOutcome> {
    const context: JsonValue = {
      subject: subject === undefined ? null : plainSubject(subject),
      mechanism: host.name,
      params: code.config,
    }
    const answer = await failClosed(async () => {
      const { value } = await plugin.call({ function: functionName, args: [request, context] })
      return readAnswer(value)
    })
    if (!answer.executed || !answer.success) return rejected('the script did not accept the caller')
    if (!answer.continued) return rejected('the script did not call nextAuth')
    if (answer.user === undefined) return subject === undefined ? rejected('the script named no user') : removed
    if (!answer.replaced && subject !== undefined) return changed(subject, answer.user)
    return establish(answer.user, uidAttr, host)
  }

  return {
    begin: async ({ request, subject }) =>
      run(await plainRequest(request, { maxBodyBytes, withheld: nothing }), subject),
    async renew(subject) {
      const outcome = await run(noRequest, subject)
      const isOther = outcome.kind === 'authenticated' && !outcome.subject.dn.equals(subject.dn)
      return isOther ? rejected('the script named another user for a session that exists') : outcome
    },
    close: () => plugin.close(),
  }
}

const nothing: ReadonlySet<string> = new Set()

/** When the user of a session is read again, no one has sent a request. */
const noRequest: PluginRequest = {
  id: '',
  method: 'GET',
  origin: '',
  host: '',
  path: '/',
  query: {},
  headers: {},
  remoteAddress: '',
  body: null,
  bodyBase64: null,
}

interface NamedUser {
  readonly dn: string
  readonly attributes: Attributes
}

interface ScriptAnswer {
  readonly executed: boolean
  readonly success: boolean
  readonly continued: boolean
  /** The script put another user in the place of the one it got. */
  readonly replaced: boolean
  readonly user: NamedUser | undefined
}

function readAnswer(value: JsonValue | undefined): ScriptAnswer {
  const reader = new PluginAnswerReader(functionName)
  const answer = reader.object(value)
  const user = answer['user'] ?? null
  const [executed, success, continued, replaced] = ['executed', 'success', 'continued', 'replaced'].map((name) =>
    reader.flag(answer[name]),
  )
  const named = user === null ? undefined : reader.object(user, 'user')
  return {
    executed: executed === true,
    success: success === true,
    continued: continued === true,
    replaced: replaced === true,
    user: named && { dn: reader.text(named['dn'], 'dn'), attributes: reader.attributes(named['attributes']) },
  }
}

/** The attributes that the script set are claims: the directory did not confirm them. The name and the login stay. */
function changed(subject: Subject, { dn, attributes: after }: NamedUser): AuthOutcome {
  if (dn !== subject.dn.toString()) return rejected('the script changed the name of the user; use setAuthInfo')
  const attributes = subject.attributes.clone()
  for (const name of attributes.names()) if (!after.has(name)) attributes.delete(name)
  for (const [name, values] of after) if (!isSame(values, attributes.values(name))) attributes.setClaim(name, values)
  const { level: _, chain: __, ...kept } = subject
  return { kind: 'authenticated', subject: { ...kept, attributes } }
}

const isSame = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((value, i) => value === other[i])

const anyEntry: Filter = { kind: 'present', attribute: 'objectClass' }

/** The entry that the script named, with the attributes that it added as claims. */
async function establish({ dn, attributes: named }: NamedUser, uidAttr: string, host: AuthHost): Promise<AuthOutcome> {
  let base: Dn
  try {
    base = Dn.parse(dn)
  } catch {
    return rejected(`the script named "${dn}", which is not the name of an entry`)
  }
  const [entry] = await host.directory.search({ base, scope: 'base', filter: anyEntry, limit: 1 })
  if (entry === undefined) return rejected(`the script named "${dn}", which is not in the directory`)
  if (isDeactivated(entry.attributes)) return rejected('the user is deactivated in the directory')
  const attributes = shownAttributes(entry)
  const uid = attributes.first(uidAttr)
  if (uid === undefined) return rejected(`"${dn}" has no attribute "${uidAttr}"`)
  const added = new Attributes()
  for (const [name, values] of named) if (!isSame(values, attributes.values(name))) added.setClaim(name, values)
  for (const [name, values] of added) attributes.setClaim(name, values)
  const link = directoryLink(entry, { filter: anyEntry, uidAttr, added })
  return { kind: 'authenticated', subject: { dn: entry.dn, identity: entry.identity, uid, attributes, link } }
}

const rejected = (reason: string): AuthOutcome => ({ kind: 'rejected', reason })
const removed = rejected('the script removed the user')
