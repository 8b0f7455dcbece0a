import { Attributes } from '#identity/attributes.ts'
import { type FieldProblem, GatewayError } from '#kernel/errors.ts'
import { isEngineKey } from '#sdk/engine-keys.ts'
import { jsonPointer } from '#sdk/json-body.ts'
import type { WorkflowCall } from '#sdk/workflow.ts'
import { type CallBody, isLogin } from './call-body.ts'

const execType = 'UNISON.EXEC.TYPE'
const execTypes: ReadonlyMap<string, boolean> = new Map([
  ['UNISON.EXEC.SYNC', false],
  ['UNISON.EXEC.ASYNC', true],
])

type CallParts = Pick<WorkflowCall, 'user' | 'params' | 'asynchronous' | 'password' | 'reason'>

/** What a well-formed body asks for, without its groups. Throws UNPROCESSABLE, which names every part that can't be used. */
export function readCall(
  body: CallBody,
  parameters: ReadonlySet<string>,
  uidAttributeName: string | undefined,
): CallParts {
  const problems: FieldProblem[] = []
  if (uidAttributeName !== undefined && uidAttributeName.toLowerCase() !== body.uidAttributeName.toLowerCase()) {
    problems.push({ pointer: '/uidAttributeName', detail: `must be "${uidAttributeName}" here` })
  }
  const subject = readSubject(body, problems)
  const asynchronous = readExecType(body, problems)
  const params = readParams(body, parameters, problems)
  if (problems.length > 0) {
    const told = problems.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ')
    throw new GatewayError('UNPROCESSABLE', `the call may not be made: ${told}`, { problems })
  }
  const { userPassword } = body.user
  return {
    user: {
      userID: subject,
      attributes: Attributes.from(body.user.attributes.map((one) => [one.name, one.values] as const)),
      groups: [],
    },
    params,
    asynchronous,
    ...(userPassword === undefined ? {} : { password: userPassword }),
    ...(body.reason === undefined || body.reason === '' ? {} : { reason: body.reason }),
  }
}

/** The one value of the attribute that names the subject. An attribute that is given twice could name two. */
function readSubject({ user, uidAttributeName }: CallBody, problems: FieldProblem[]): string {
  const seen = new Set<string>()
  for (const [i, { name }] of user.attributes.entries()) {
    const pointer = jsonPointer(['user', 'attributes', i, 'name'])
    if (seen.has(name.toLowerCase())) problems.push({ pointer, detail: 'is there twice' })
    seen.add(name.toLowerCase())
  }
  const at = user.attributes.findIndex(({ name }) => name.toLowerCase() === uidAttributeName.toLowerCase())
  const values = user.attributes[at]?.values ?? []
  const [value = ''] = values
  if (at < 0) {
    problems.push({ pointer: '/uidAttributeName', detail: 'names none of the attributes of the user' })
  } else if (values.length !== 1 || value.length > 256 || !isLogin(value)) {
    const detail = 'must be one login of at most 256 characters, since it names the subject'
    problems.push({ pointer: jsonPointer(['user', 'attributes', at, 'values']), detail })
  }
  return value
}

function readExecType({ requestParams = {} }: CallBody, problems: FieldProblem[]): boolean {
  const value = requestParams[execType]
  if (value === undefined) return false
  const asynchronous = execTypes.get(value)
  if (asynchronous === undefined) {
    const detail = `must be ${[...execTypes.keys()].join(' or ')}`
    problems.push({ pointer: jsonPointer(['requestParams', execType]), detail })
  }
  return asynchronous ?? false
}

/** Only what the workflow takes. A dot in a name is written `_` in templates, so `a.b` is taken where `$a_b$` is used. */
function readParams(
  { requestParams = {} }: CallBody,
  parameters: ReadonlySet<string>,
  problems: FieldProblem[],
): Record<string, string> {
  const params: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(requestParams)) {
    if (name === execType) continue
    const pointer = jsonPointer(['requestParams', name])
    if (isEngineKey(name)) problems.push({ pointer, detail: 'steers the engine, which no caller may' })
    else if (!parameters.has(name) && !parameters.has(name.replaceAll('.', '_'))) {
      problems.push({ pointer, detail: 'is not a parameter of this workflow' })
    } else params[name] = value
  }
  return params
}
