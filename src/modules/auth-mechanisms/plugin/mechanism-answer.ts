import type { Attributes } from '#identity/attributes.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { PluginAnswerReader } from '#modules/shared/plugin/plugin-answer.ts'
import { readHeaders } from '#modules/shared/plugin/plugin-headers.ts'
import type { AuthOutcome } from '#sdk/auth/auth-mechanism.ts'

export type MechanismAnswer =
  | { readonly kind: 'named'; readonly uid: string; readonly attributes: Attributes }
  | Extract<AuthOutcome, { kind: 'rejected' }>

const maxReason = 1000

/** A caller, or a refusal, and nothing that is both or neither. */
export function readMechanismAnswer(value: JsonValue | undefined, reader: PluginAnswerReader): MechanismAnswer {
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
