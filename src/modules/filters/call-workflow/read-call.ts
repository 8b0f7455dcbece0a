import { Attributes } from '#identity/attributes.ts'
import { type FieldProblem, GatewayError } from '#kernel/errors.ts'
import { jsonPointer } from '#modules/shared/http/json-body.ts'
import { isEngineKey } from '#sdk/workflow/engine-keys.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import { type CallBody, isLogin } from './call-body.ts'

const execType = 'UNISON.EXEC.TYPE'
const execTypes: ReadonlyMap<string, boolean> = new Map([
  ['UNISON.EXEC.SYNC', false],
  ['UNISON.EXEC.ASYNC', true],
])

type CallParts = Pick<WorkflowCall, 'user' | 'params' | 'asynchronous' | 'password' | 'reason'>

export interface CallRules {
  /** The parameters that the workflow declares, or uses as `$name$`. */
  readonly declared: ReadonlySet<string>
  /** Whether other parameters are refused. */
  readonly declaredParamsOnly: boolean
  /** The attribute that must name the subject; undefined: the body chooses one. */
  readonly uidAttributeName: string | undefined
}

/** What a well-formed body asks for, without its groups. Throws UNPROCESSABLE, which names every part that can't be used. */
export function readCall(body: CallBody, rules: CallRules): CallParts {
  const { uidAttributeName } = rules
  const problems: FieldProblem[] = []
  if (uidAttributeName !== undefined && uidAttributeName.toLowerCase() !== body.uidAttributeName.toLowerCase()) {
    problems.push({ pointer: '/uidAttributeName', detail: `must be "${uidAttributeName}" here` })
  }
  const subject = readSubject(body, problems)
  const asynchronous = readExecType(body, problems)
  const params = readParams(body, rules, problems)
  if (problems.length > 0) {
    const told = problems.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ')
    throw new GatewayError('UNPROCESSABLE', `the call may not be made: ${told}`, { problems })
  }
  const { userPassword } = body.user
  const attributes = Attributes.from(body.user.attributes.map((one) => [one.name, one.values] as const))
  if (!attributes.has(body.uidAttributeName)) attributes.set(body.uidAttributeName, [subject])
  return {
    user: { userID: subject, attributes, groups: [] },
    params,
    asynchronous,
    ...(userPassword === undefined ? {} : { password: userPassword }),
    ...(body.reason === undefined || body.reason === '' ? {} : { reason: body.reason }),
  }
}

const loginDetail = 'must be one login of at most 256 characters, since it names the subject'
const isSubject = (login: string): boolean => login.length <= 256 && isLogin(login)

/** The one value of the attribute that names the subject, or else `user.uid`. An attribute that is given twice could name two. */
function readSubject({ user, uidAttributeName }: CallBody, problems: FieldProblem[]): string {
  const seen = new Set<string>()
  for (const [i, { name }] of user.attributes.entries()) {
    const pointer = jsonPointer(['user', 'attributes', i, 'name'])
    if (seen.has(name.toLowerCase())) problems.push({ pointer, detail: 'is there twice' })
    seen.add(name.toLowerCase())
  }
  const { uid = '' } = user
  const at = user.attributes.findIndex(({ name }) => name.toLowerCase() === uidAttributeName.toLowerCase())
  if (at < 0) {
    if (uid === '') {
      const detail = 'names none of the attributes of the user, and user.uid is missing; send one of them'
      problems.push({ pointer: '/uidAttributeName', detail })
    } else if (!isSubject(uid)) problems.push({ pointer: '/user/uid', detail: loginDetail })
    return uid
  }
  const values = user.attributes[at]?.values ?? []
  const [value = ''] = values
  if (values.length !== 1 || !isSubject(value)) {
    problems.push({ pointer: jsonPointer(['user', 'attributes', at, 'values']), detail: loginDetail })
  } else if (uid !== '' && !sameLogin(uid, value)) {
    const detail = `names another user than the attribute "${uidAttributeName}"; send the same login in both, or only one`
    problems.push({ pointer: '/user/uid', detail })
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

/** A key that the engine reads, which callers set only where the workflow lists it. */
const isReserved = (name: string): boolean => /^unison[._]/i.test(name)
const isParameterName = (name: string): boolean => /^[^\p{Cc}]{1,256}$/u.test(name) && name.isWellFormed()

/** A dot in a name is written `_` in templates, so `a.b` is declared where `$a_b$` is used. */
function readParams(
  { requestParams = {} }: CallBody,
  { declared, declaredParamsOnly }: CallRules,
  problems: FieldProblem[],
): Record<string, string> {
  const params: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(requestParams)) {
    if (name === execType) continue
    const pointer = jsonPointer(['requestParams', name])
    const isDeclared = declared.has(name) || declared.has(name.replaceAll('.', '_'))
    if (isEngineKey(name) || (isReserved(name) && !isDeclared)) {
      problems.push({ pointer, detail: 'steers the engine, which no caller may' })
    } else if (!isParameterName(name)) {
      problems.push({ pointer, detail: 'needs a name of 1 to 256 characters without control characters' })
    } else if (declaredParamsOnly && !isDeclared) {
      const detail = 'is not a parameter of this workflow; list it in Workflow.parameters, or use it in a task'
      problems.push({ pointer, detail })
    } else params[name] = value
  }
  return params
}
