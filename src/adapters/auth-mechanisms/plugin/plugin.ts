import type { Attributes } from '#identity/attributes.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import { type AuthMechanism, type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { linkParameters, linkSubject, parseSubjectLink, type SubjectLink } from '#sdk/login/linked-subject.ts'
import { list, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { openPlugin, type PluginCode, pluginParameters, readPluginCode } from '#sdk/plugin/plugin-code.ts'
import { maxBodyKilobytes, plainRequest, plainSubject, readHeaders } from '#sdk/plugin/plugin-request.ts'

interface PluginMechanismConfig {
  readonly code: PluginCode
  readonly link: SubjectLink
  readonly maxBodyBytes: number
}

const functionName = 'authenticate'
const nothing: ReadonlySet<string> = new Set()

/**
 * Loads the code and runs `init`; rejects with the reason if either fails. The plug-in names a caller or refuses; if it
 * does neither the request fails, even if the chain does not require the mechanism.
 */
export async function openPluginMechanism(
  { code, link, maxBodyBytes }: PluginMechanismConfig,
  host: Pick<AuthHost, 'name' | 'log' | 'javaScript' | 'directory'>,
): Promise<AuthMechanism> {
  const plugin = await openPlugin(code, host, {
    name: `the plug-in mechanism "${host.name}"`,
    functions: ['init', functionName, 'shutdown'],
    required: [functionName],
    init: [code.config, host.name],
  })
  return {
    async begin({ request, subject, root }) {
      const context: JsonValue = { subject: subject === undefined ? null : plainSubject(subject) }
      const { value } = await plugin.call({
        function: functionName,
        args: [await plainRequest(request, { maxBodyBytes, withheld: nothing }), context],
        request: 1,
      })
      const answer = readMechanismAnswer(value, new PluginAnswerReader(functionName))
      if (answer.kind === 'rejected') return answer
      const claims = answer.attributes
      claims.set(link.uidAttr, [answer.uid])
      const linked = await linkSubject(claims, link, root, host)
      if (linked.kind === 'refused') return { kind: 'rejected', reason: linked.reason }
      return { kind: 'authenticated', subject: linked.subject }
    },
    close: () => plugin.close(),
  }
}

type MechanismAnswer =
  | { readonly kind: 'named'; readonly uid: string; readonly attributes: Attributes }
  | Extract<AuthOutcome, { kind: 'rejected' }>

const maxReason = 1000

/** A caller, or a refusal; an answer that is both or neither throws. */
function readMechanismAnswer(value: JsonValue | undefined, reader: PluginAnswerReader): MechanismAnswer {
  const answer = reader.object(value)
  const isRefusal = Object.hasOwn(answer, 'refused')
  onlyFields(answer, isRefusal ? ['refused', 'status', 'headers', 'noCredential'] : ['subject'], reader)
  if (isRefusal) return readRefusal(answer, reader)
  const subject = reader.object(answer['subject'], 'subject')
  onlyFields(subject, ['uid', 'attributes'], reader)
  return {
    kind: 'named',
    uid: reader.text(subject['uid'], 'subject.uid'),
    attributes: reader.attributes(subject['attributes'] ?? {}),
  }
}

function readRefusal(answer: JsonObject, reader: PluginAnswerReader): MechanismAnswer {
  const { status = 401, noCredential } = answer
  if (status !== 401 && status !== 403) throw reader.malformed('status must be 401 or 403')
  if (noCredential !== undefined && typeof noCredential !== 'boolean') {
    throw reader.malformed('noCredential must be true or false')
  }
  const headers: Record<string, string> = Object.create(null)
  for (const [name, content] of Object.entries(readHeaders(answer['headers'], reader))) {
    if (typeof content !== 'string') throw reader.malformed(`the header "${name}" must have one value`)
    headers[name] = content
  }
  return {
    kind: 'rejected',
    reason: reader.text(answer['refused'], 'refused').slice(0, maxReason),
    status,
    headers,
    ...(noCredential === true ? { noCredential } : {}),
  }
}

function onlyFields(object: JsonObject, known: readonly string[], reader: PluginAnswerReader): void {
  const unknown = Object.keys(object).find((name) => !known.includes(name))
  if (unknown !== undefined) throw reader.malformed(`it has the unknown field "${unknown}"`)
}

const parameters = {
  ...pluginParameters,
  '<name>': list({
    about: "Any other parameter of the chain's entry, and of its `secretParams`, is passed to `init`.",
  }),
  ...linkParameters,
  uidAttr: text({ about: "The attribute that the answer's `uid` becomes.", fallback: 'uid' }),
  maxBodyKilobytes: maxBodyKilobytes(0),
}

export default defineAuthMechanism<PluginMechanismConfig>({
  className: 'auth.Plugin',
  parameters,
  parse: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    return {
      code: readPluginCode(values, Object.keys(parameters), params, issues, context),
      link: parseSubjectLink(values, params, issues),
      maxBodyBytes: values.maxBodyKilobytes * 1024,
    }
  },
  create: openPluginMechanism,
})
