import { ArrayList, JavaCollection } from '#openunison/scripts/java/collections.ts'
import { HashMap, HashSet } from '#openunison/scripts/java/hash-map.ts'
import { ConfigManager, setRun, Workflow, WorkflowTask } from '#openunison/scripts/java/host-objects.ts'
import { Attribute, AuthInfo, Group, User, userFrom } from '#openunison/scripts/java/identity.ts'
import { IllegalStateException } from '#openunison/scripts/java/java-exception.ts'
import { JavaEnum, StringBuffer } from '#openunison/scripts/java/java-lang.ts'
import { NVP } from '#openunison/scripts/java/java-types.ts'
import { javaText, javaValue, TextValue } from '#openunison/scripts/java/java-value.ts'
import { JobExecutionContext } from '#openunison/scripts/java/job-context.ts'
import { NewUserRequest, ScaleJSRegisterConfig } from '#openunison/scripts/java/registration.ts'
import {
  HttpFilterConfig,
  HttpServletRequest,
  HttpServletResponse,
  type PlainRequest,
  sessionOf,
} from '#openunison/scripts/java/servlet.ts'
import { type CallResult, FilterCall, LoginCall } from './script-call.ts'

/** The sources of a function's parameter: the gateway's own arguments, by position. */
export interface ScriptParameter {
  readonly kind:
    | 'value'
    | 'user'
    | 'set'
    | 'texts'
    | 'attributes'
    | 'textMap'
    | 'request'
    | 'taskRequest'
    | 'requestor'
    | 'subject'
    | 'manager'
    | 'task'
    | 'jobContext'
    | 'filterConfig'
    | 'filterRequest'
    | 'filterResponse'
    | 'filterChain'
    | 'loginRequest'
    | 'loginResponse'
    | 'loginStep'
    | 'registerConfig'
    | 'newUser'
    | 'callerRequest'
    | 'list'
    | 'map'
  readonly from?: number | undefined
}

type Fields = Readonly<Record<string, unknown>>

const maxDepth = 20

/** The objects that several arguments of one call share. */
export class SharedObjects {
  readonly #args: readonly unknown[]
  #filter: FilterCall | undefined
  #login: LoginCall | undefined

  constructor(args: readonly unknown[]) {
    this.#args = args
  }

  /** Undefined if the function's own result counts. */
  get result(): CallResult | undefined {
    return this.#filter ?? this.#login
  }

  /** The gateway's arguments are the request and its context. */
  get filter(): FilterCall {
    const [request, context] = this.#args
    const authInfo = javaSubject(fieldsOf(fieldsOf(context)['subject']))
    this.#filter ??= new FilterCall(request as PlainRequest, authInfo, attributesOf)
    return this.#filter
  }

  /** The gateway's arguments are the request and its context. */
  get login(): LoginCall {
    const [request, context] = this.#args
    const { subject, mechanism, params } = fieldsOf(context)
    const before = subject === null ? null : javaSubject(fieldsOf(subject))
    const parts = { before, mechanism: javaText(mechanism), params: attributeMap(fieldsOf(params)) }
    this.#login ??= new LoginCall(request as PlainRequest, parts, attributesOf)
    return this.#login
  }
}

const attributesOf = (authInfo: AuthInfo): object => plainAttributes(authInfo.getAttribs())

/** A Java argument from plain ones. */
export function javaArgument(
  { kind, from = -1 }: ScriptParameter,
  args: readonly unknown[],
  shared: SharedObjects,
): unknown {
  const plain = args[from]
  const fields = fieldsOf(plain)
  switch (kind) {
    case 'value':
      return javaValue(plain)
    case 'user':
      return userFrom(fields)
    case 'set':
      return new HashSet(plain ?? [])
    case 'texts':
      return [...((plain ?? []) as unknown[])]
    case 'attributes':
      return attributeMap(fields)
    case 'textMap':
      return new HashMap(firstTexts(fields))
    case 'request':
      beginRun(fieldsOf(fields['workflow']), fields['requestor'], {})
      return requestMap(fieldsOf(fields['params']))
    case 'taskRequest': {
      const { workflow, requestor } = fieldsOf(args[from + 1])
      beginRun(fieldsOf(workflow), requestor, fieldsOf(args[from - 1]))
      return requestMap(fields)
    }
    case 'requestor':
      return new User(fields['requestor'])
    case 'subject':
      return javaSubject(fields)
    case 'manager':
      return new ConfigManager()
    case 'task':
      return new WorkflowTask()
    case 'jobContext':
      return new JobExecutionContext(firstTexts(fieldsOf(fields['params'])))
    case 'filterConfig':
      return new HttpFilterConfig(attributeMap(fields))
    case 'filterRequest':
      return shared.filter.request
    case 'filterResponse':
      return shared.filter.response
    case 'filterChain':
      return shared.filter.chain
    case 'loginRequest':
      return shared.login.request
    case 'loginResponse':
      return new HttpServletResponse()
    case 'loginStep':
      return shared.login.step
    case 'registerConfig':
      return new ScaleJSRegisterConfig(fields)
    case 'newUser':
      return new NewUserRequest(fieldsOf(fields['attributes']), fields['reason'])
    case 'callerRequest':
      return callerRequest(javaSubject(fieldsOf(fields['subject'])))
    case 'list':
      return new ArrayList(plain ?? [])
    case 'map':
      return new HashMap(fields)
  }
}

/** A request of which only the signed-in user is known. */
const callerRequest = (authInfo: AuthInfo): HttpServletRequest =>
  new HttpServletRequest(
    {
      method: 'GET',
      origin: '',
      host: '',
      path: '',
      query: {},
      headers: {},
      remoteAddress: '',
      body: null,
      bodyBase64: null,
    },
    sessionOf(authInfo),
  )

const beginRun = ({ id, name }: Fields, requester: unknown, user: Fields): void =>
  setRun({ id: javaText(id), name: javaText(name), requester: javaText(requester), user })

const javaSubject = ({ dn, chain, level, attributes }: Fields): AuthInfo =>
  new AuthInfo(dn, chain, chain, level, attributeMap(fieldsOf(attributes)))

function attributeMap(fields: Fields): HashMap {
  const map = new HashMap()
  for (const [name, values] of Object.entries(fields)) map.put(name, new Attribute(name, values))
  return map
}

function requestMap(params: Fields): HashMap {
  const map = new HashMap()
  for (const [name, value] of Object.entries(params)) map.put(name, javaData(value))
  map.put('WORKFLOW', new Workflow())
  return map
}

function javaData(value: unknown): unknown {
  if (Array.isArray(value)) return new ArrayList(value.map(javaData))
  if (typeof value !== 'object' || value === null) return value
  const map = new HashMap()
  for (const [name, field] of Object.entries(value)) map.put(name, javaData(field))
  return map
}

/** Plain data for the gateway. Leaves out everything else; undefined if nothing is left. */
export function plainData(value: unknown, depth = 0): unknown {
  const plain = javaValue(value)
  if (depth > maxDepth) throw new IllegalStateException('the answer goes too deep')
  if (plain === null || typeof plain === 'string' || typeof plain === 'boolean') return plain
  if (typeof plain === 'number') return Number.isFinite(plain) ? plain : null
  if (typeof plain === 'bigint') return `${plain}`
  if (typeof plain !== 'object') return undefined
  if (plain instanceof User) return plainUser(plain)
  if (plain instanceof Group) return plainGroup(plain)
  if (plain instanceof NVP) return { name: plain.getName(), value: plain.getValue() }
  if (plain instanceof NewUserRequest)
    return { attributes: plainFields(plain.getAttributes(), depth + 1), reason: plain.getReason() }
  if (plain instanceof Attribute) return { name: plain.getName(), values: texts(plain.getValues()) }
  if (plain instanceof TextValue || plain instanceof StringBuffer || plain instanceof JavaEnum) return plain.toString()
  if (plain instanceof Workflow || plain instanceof ConfigManager || plain instanceof WorkflowTask) return undefined
  if (plain instanceof HashMap) return plainFields(plain, depth)
  if (plain instanceof JavaCollection || Array.isArray(plain) || plain instanceof Int8Array) {
    return Array.from(plain as Iterable<unknown>, (item) => plainData(item, depth + 1) ?? null)
  }
  if ('then' in plain && typeof plain.then === 'function') {
    throw new IllegalStateException('the answer is a promise; a legacy script answers at once')
  }
  return plainFields(Object.entries(plain), depth)
}

function plainFields(entries: Iterable<readonly [unknown, unknown]>, depth: number): object {
  const fields: Record<string, unknown> = Object.create(null)
  for (const [name, field] of entries) {
    const data = plainData(field, depth + 1)
    if (data !== undefined) fields[javaText(name)] = data
  }
  return fields
}

function plainUser(user: User): object {
  const reason = user.getRequestReason()
  return {
    userID: user.getUserID(),
    attributes: plainAttributes(user.getAttribs()),
    groups: texts(user.getGroups()),
    ...(reason === '' ? {} : { requestReason: reason }),
  }
}

function plainGroup(group: Group): object {
  const [id, description] = [group.getId(), group.getDescription()]
  return {
    name: group.getName(),
    members: texts(group.getMembers()),
    attributes: plainAttributes(group.getAttributes()),
    ...(id === null ? {} : { id }),
    ...(description === null || description === '' ? {} : { description }),
  }
}

function plainAttributes(attributes: HashMap): object {
  const plain: Record<string, unknown> = Object.create(null)
  for (const [name, attribute] of attributes) {
    const values = attribute instanceof Attribute ? attribute.getValues() : new ArrayList(attribute)
    if (values.size() > 0) plain[javaText(name)] = texts(values)
  }
  return plain
}

const texts = (items: ArrayList): unknown[] => items.toArray().map((item) => (item === null ? null : javaText(item)))

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})

const firstTexts = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).map(([name, values]) => [name, firstOf(values)]))

const firstOf = (values: unknown): unknown => (Array.isArray(values) ? (values[0] ?? null) : values)
