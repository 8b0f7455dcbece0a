import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { member, requireMessageOf, textMember, wholeMember } from '#protocols/scim/message.ts'
import { patchSchema } from '#protocols/scim/patch/parse-patch.ts'
import { errorBody, errorSchema, quoted, scimError } from '#protocols/scim/schema/scim-error.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { DryRun, refuseDryRunMember } from './dry-run.ts'
import type { GatewayParts } from './run-workflow.ts'
import { answer, type Handler, type Route, type ScimCall } from './scim-call.ts'

/** `/Bulk`: each operation is a call of its own, as if it were a request. */
export function bulkHandler(
  findRoute: (path: string) => Route | undefined,
  { log, rates }: Pick<GatewayParts, 'log' | 'rates'>,
): Handler {
  const perform = async (call: ScimCall, operation: BulkOperation): Promise<BulkOutcome> => {
    try {
      await rates?.take(call.exchange.subject.identity)
      const route = findRoute(operation.path)
      if (route === undefined) throw new GatewayError('NOT_FOUND', `nothing at ${operation.path}`)
      const handler = isItem(operation) === (route.id !== '') ? route.methods.get(operation.method) : undefined
      if (handler === undefined) throw new GatewayError('METHOD_NOT_ALLOWED', operation.method)
      const own = subCall(call, operation, route)
      const response = await handler(own)
      return own.dryRun === undefined ? outcomeOf(call, operation, response) : previewOf(call, operation, own.dryRun)
    } catch (thrown) {
      const error = asGatewayError(thrown)
      const { id: requestId } = call.exchange.request
      if (!error.isRefusal) log.error('an operation of a bulk request failed', { err: error, requestId })
      return { ...locationOf(call, operation), status: error.status, response: errorBody(error) }
    }
  }
  return async (call) => {
    const request = readBulkRequest(await bodyOf(call))
    call.notes.operations = request.operations.map(({ method, path }) => ({ method, path }))
    const { signal } = call.exchange.request
    const isStopped = (): boolean => signal.aborted
    const run = call.dryRun === undefined ? runBulk : previewBulk
    return answer(200, await run(request, (operation) => perform(call, operation), isStopped))
  }
}

async function bodyOf(call: ScimCall) {
  try {
    return await call.body(maxBulkPayload)
  } catch (error) {
    const isLarge = error instanceof GatewayError && error.code === 'BODY_TOO_LARGE'
    throw isLarge ? tooLarge(`maxPayloadSize (${maxBulkPayload})`, error) : error
  }
}

/** Shares the notes of the request, except for the operations of a PATCH inside it. */
const subCall = (call: ScimCall, { method, version, data }: BulkOperation, { id }: Route): ScimCall => ({
  ...call,
  ...(call.dryRun === undefined ? {} : { dryRun: new DryRun(call.dryRun.room) }),
  method,
  id,
  // Of a resource, only its id and version are answered, so the members of a group need not be read.
  query: new URLSearchParams({ excludedAttributes: 'members' }),
  ifMatch: version,
  ifNoneMatch: undefined,
  notes: { workflows: call.notes.workflows, changes: call.notes.changes },
  body: async () => data ?? null,
})

const previewOf = (call: ScimCall, operation: BulkOperation, dryRun: DryRun): BulkOutcome => ({
  ...locationOf(call, operation),
  status: 200,
  dryRun,
  response: dryRun.message,
})

const isItem = ({ method }: BulkOperation): boolean => method !== 'POST'

function outcomeOf(call: ScimCall, operation: BulkOperation, response: GatewayResponse): BulkOutcome {
  const { status, headers, body } = response
  const { location, etag } = headers
  const id = operation.method === 'POST' && typeof body === 'string' ? idIn(body) : undefined
  return {
    status,
    ...locationOf(call, operation),
    ...(typeof location === 'string' ? { location } : {}),
    ...(typeof etag === 'string' ? { version: etag } : {}),
    id,
  }
}

/** A POST that failed has no location (RFC 7644 3.7). */
const locationOf = (call: ScimCall, operation: BulkOperation): { location?: string } =>
  isItem(operation) ? { location: call.base + operation.path } : {}

function idIn(body: string): string | undefined {
  const resource: unknown = JSON.parse(body)
  return isJsonObject(resource) && typeof resource['id'] === 'string' ? resource['id'] : undefined
}

const bulkResponseSchema = 'urn:ietf:params:scim:api:messages:2.0:BulkResponse'

export interface BulkOutcome {
  readonly status: number
  /** Of the resource that was created. */
  readonly id?: string | undefined
  readonly location?: string | undefined
  /** Its entity tag. */
  readonly version?: string
  /** The body of an error, or of a dry run. */
  readonly response?: JsonObject
  readonly dryRun?: DryRun
}

/** Performs one operation without references; never throws. */
type Perform = (operation: BulkOperation) => Promise<BulkOutcome>

/** The BulkResponse of RFC 7644 3.7. Operations that were not reached are not listed. */
export async function runBulk(request: BulkRequest, perform: Perform, isStopped = () => false): Promise<JsonObject> {
  return bulkResponse(request, await new BulkJob(request, perform, isStopped).run())
}

/**
 * What each operation would do to the resources as they are now. What depends on another operation of the request is
 * unknown, and says so.
 */
async function previewBulk(request: BulkRequest, perform: Perform, isStopped: () => boolean): Promise<JsonObject> {
  const { operations, failOnErrors } = request
  const most = failOnErrors === undefined ? Number.POSITIVE_INFINITY : Math.max(1, failOnErrors)
  const created = new Set(operations.flatMap(({ method, bulkId = [] }) => (method === 'POST' ? bulkId : [])))
  const failed = new Set<string>()
  const earlier = new EarlierOperations()
  const outcomes: BulkOutcome[] = new Array(operations.length)
  let errors = 0
  for (const [i, operation] of inOrder(operations)) {
    // On SQLite no operation waits for anything.
    await yieldToOthers()
    if (errors >= most || isStopped()) break
    const outcome = await previewOperation(operation, { created, failed }, perform)
    const { dryRun } = outcome
    if (dryRun !== undefined) earlier.add(operation, dryRun)
    outcomes[i] = dryRun === undefined ? outcome : { ...outcome, response: dryRun.message }
    if (outcome.status < 400) continue
    errors++
    if (operation.method === 'POST') failed.add(operation.bulkId ?? '')
  }
  return bulkResponse(request, outcomes)
}

/** What the operations so far change and refer to. */
class EarlierOperations {
  readonly #changed = new Set<string>()
  /** The ids in their paths, and in lower case like all texts here. */
  readonly #ids = new Set<string>()
  /** The texts in their data, any of which may be an id. */
  readonly #texts = new Set<string>()

  /** An operation is not complete if it depends on an earlier one. */
  add(operation: BulkOperation, dryRun: DryRun): void {
    const id = idOf(operation)
    const texts = textsIn(operation.data ?? null)
    const isKnown = id !== undefined && (this.#ids.has(id) || this.#texts.has(id))
    if (isKnown || !texts.isDisjointFrom(this.#ids) || !dryRun.changed.isDisjointFrom(this.#changed)) {
      dryRun.cut('Earlier operations of this request change or name the same users or groups.')
    }
    if (id !== undefined) this.#ids.add(id)
    for (const text of texts) this.#texts.add(text)
    for (const one of dryRun.changed) this.#changed.add(one)
  }
}

function idOf({ method, path }: BulkOperation): string | undefined {
  if (method === 'POST') return undefined
  const last = path.slice(path.lastIndexOf('/') + 1)
  try {
    return decodeURIComponent(last).toLowerCase()
  } catch {
    return last.toLowerCase()
  }
}

/** All texts, and those that filters in them quote. The parser of the body limits the depth, and so the recursion. */
function textsIn(value: JsonValue, into = new Set<string>()): Set<string> {
  if (typeof value === 'string') {
    into.add(value.toLowerCase())
    for (const [, quotedText = ''] of value.matchAll(/"([^"]*)"/g)) into.add(quotedText.toLowerCase())
  } else if (Array.isArray(value)) {
    for (const item of value) textsIn(item, into)
  } else if (isJsonObject(value)) {
    for (const item of Object.values(value)) textsIn(item, into)
  }
  return into
}

async function previewOperation(
  operation: BulkOperation,
  { created, failed }: Readonly<Record<'created' | 'failed', ReadonlySet<string>>>,
  perform: Perform,
): Promise<BulkOutcome> {
  const references = referencesOf(operation)
  const [unknown] = references.difference(created)
  if (unknown !== undefined) return unknownReference(unknown)
  const [missing] = references.intersection(failed)
  if (missing !== undefined) return conflict(undefined, missing)
  if (references.size === 0) return await perform(operation)
  // As far as it does not depend on them: its name may be taken. What remains may lack something, and is then unknown.
  const isOfNew = operation.method !== 'POST' && pathReference(operation.path) !== undefined
  const { data } = deferReferences(operation.data ?? {}, references)
  const rest = isOfNew ? undefined : await perform({ ...operation, data })
  if (rest !== undefined && rest.status > 400) return rest
  const dryRun = rest?.dryRun ?? new DryRun()
  dryRun.cut('The operation refers to resources that other operations of this request create.')
  return { location: rest?.location, status: 200, dryRun }
}

/** The bulkIds in the data and in the path. */
function referencesOf({ method, path, data }: BulkOperation): Set<string> {
  const references = referencesIn(data ?? null)
  const inPath = method === 'POST' ? undefined : pathReference(path)
  return inPath === undefined ? references : references.add(inPath)
}

function bulkResponse(request: BulkRequest, outcomes: readonly (BulkOutcome | undefined)[]): JsonObject {
  return {
    schemas: [bulkResponseSchema],
    Operations: request.operations.flatMap((operation, i) => {
      const outcome = outcomes[i]
      return outcome === undefined ? [] : [describe(operation, outcome)]
    }),
  }
}

function describe({ method, bulkId }: BulkOperation, { status, location, version, response }: BulkOutcome): JsonObject {
  return {
    ...(location === undefined ? {} : { location }),
    method,
    ...(bulkId === undefined ? {} : { bulkId }),
    ...(version === undefined ? {} : { version }),
    status: String(status),
    ...(response === undefined ? {} : { response }),
  }
}

/** The operations that create what others refer to, by its bulkId. */
const creatorsIn = (operations: readonly BulkOperation[]): ReadonlyMap<string, number> =>
  new Map(
    operations.flatMap(({ method, bulkId }, i) => (method === 'POST' && bulkId !== undefined ? [[bulkId, i]] : [])),
  )

/** In the order of the request, but each after those that create what it refers to, unless they refer to it. */
function inOrder(operations: readonly BulkOperation[]): readonly (readonly [number, BulkOperation])[] {
  const creators = creatorsIn(operations)
  const begun = new Set<number>()
  const ordered: [number, BulkOperation][] = []
  // The depth of recursion is at most the number of operations.
  const visit = (index: number | undefined): void => {
    const operation = operations[index ?? -1]
    if (index === undefined || operation === undefined || begun.has(index)) return
    begun.add(index)
    for (const bulkId of referencesOf(operation)) visit(creators.get(bulkId))
    ordered.push([index, operation])
  }
  for (const index of operations.keys()) visit(index)
  return ordered
}

/** What is missing in a created resource, because it refers to one that did not exist yet. */
interface Completion {
  readonly index: number
  readonly operations: readonly JsonObject[]
  /** The bulkIds that are not created yet. */
  readonly open: Set<string>
}

/**
 * Performs operations in order, except that a resource is created before operations that refer to it. If resources refer to
 * each other in a circle, one is created without the reference and completed by a PATCH (RFC 7644 3.7.1).
 */
class BulkJob {
  readonly #operations: readonly BulkOperation[]
  readonly #failOnErrors: number
  readonly #perform: Perform
  readonly #isStopped: () => boolean
  readonly #outcomes: (BulkOutcome | undefined)[]
  readonly #creators: ReadonlyMap<string, number>
  readonly #ids = new Map<string, string>()
  readonly #completions = new Set<Completion>()
  /** The completions by the bulkId that they wait for. */
  readonly #awaiting = new Map<string, Completion[]>()
  #errors = 0

  constructor({ operations, failOnErrors }: BulkRequest, perform: Perform, isStopped: () => boolean) {
    this.#operations = operations
    this.#failOnErrors = failOnErrors === undefined ? Number.POSITIVE_INFINITY : Math.max(1, failOnErrors)
    this.#perform = perform
    this.#isStopped = isStopped
    this.#outcomes = new Array(operations.length)
    this.#creators = creatorsIn(operations)
  }

  async run(): Promise<readonly (BulkOutcome | undefined)[]> {
    for (const [i, operation] of inOrder(this.#operations)) await this.#do(i, operation)
    for (const { index } of this.#completions) this.#settle(index, conflict(this.#outcomes[index]))
    return this.#outcomes
  }

  get #stopped(): boolean {
    return this.#errors >= this.#failOnErrors || this.#isStopped()
  }

  async #do(index: number, operation: BulkOperation): Promise<void> {
    const inPath = operation.method === 'POST' ? undefined : pathReference(operation.path)
    const wanted = referencesOf(operation)
    // On SQLite no operation waits for anything, so the requests of others, and the end of this one, would.
    await yieldToOthers()
    if (this.#stopped) return
    const open = wanted.difference(this.#ids)
    const refusal = this.#refusal(open)
    this.#settle(index, refusal ?? (await this.#create(index, operation, inPath, open)))
    if (operation.method === 'POST') await this.#created(operation.bulkId ?? '')
  }

  /** Why a reference can't be resolved: no operation creates the resource, or that operation failed. */
  #refusal(open: ReadonlySet<string>): BulkOutcome | undefined {
    for (const bulkId of open) {
      const creator = this.#creators.get(bulkId)
      if (creator === undefined) {
        return unknownReference(bulkId)
      }
      if (this.#outcomes[creator] !== undefined) return conflict(undefined, bulkId)
    }
    return undefined
  }

  /** With open references, this operation is a POST in a circle of references. */
  async #create(
    index: number,
    operation: BulkOperation,
    inPath: string | undefined,
    open: ReadonlySet<string>,
  ): Promise<BulkOutcome> {
    const { data, operations } = deferReferences(operation.data ?? {}, open)
    const id = inPath === undefined ? undefined : this.#ids.get(inPath)
    const outcome = await this.#perform({
      ...operation,
      path: id === undefined ? operation.path : resolvePath(operation.path, id),
      data: operation.data === undefined ? undefined : resolveObject(data, this.#ids),
    })
    if (outcome.status >= 400) return outcome
    if (operation.bulkId !== undefined && outcome.id !== undefined) this.#ids.set(operation.bulkId, outcome.id)
    if (open.size > 0) this.#later({ index, operations, open: new Set(open) })
    return outcome
  }

  #later(completion: Completion): void {
    this.#completions.add(completion)
    for (const bulkId of completion.open) {
      const others = this.#awaiting.get(bulkId)
      if (others === undefined) this.#awaiting.set(bulkId, [completion])
      else others.push(completion)
    }
  }

  /** Completes resources that waited only for this one, whether it was created or not. */
  async #created(bulkId: string): Promise<void> {
    for (const completion of this.#awaiting.get(bulkId) ?? []) {
      completion.open.delete(bulkId)
      if (completion.open.size === 0) await this.#complete(completion)
    }
  }

  async #complete(completion: Completion): Promise<void> {
    const { index, operations } = completion
    this.#completions.delete(completion)
    const { path = '', bulkId = '' } = this.#operations[index] ?? {}
    const { version: _, ...created } = { version: undefined, status: 201, ...this.#outcomes[index] }
    const id = this.#ids.get(bulkId)
    const isOpen = [...referencesIn(operations)].some((other) => !this.#ids.has(other))
    if (id === undefined || isOpen) {
      this.#settle(index, conflict(created))
      return
    }
    const completed = await this.#perform({
      method: 'PATCH',
      path: resolvePath(path.endsWith('/') ? path : `${path}/`, id),
      bulkId: undefined,
      version: undefined,
      data: { Operations: operations.map((one) => resolveObject(one, this.#ids)) },
    })
    const version = completed.version === undefined ? {} : { version: completed.version }
    this.#settle(index, { ...created, ...(completed.status < 400 ? version : incomplete(completed)) })
  }

  #settle(index: number, outcome: BulkOutcome): void {
    this.#outcomes[index] = outcome
    if (outcome.status >= 400) this.#errors++
  }
}

/** The resource was created, but its references could not be added. */
function incomplete({ status, response }: BulkOutcome): BulkOutcome {
  const detail = String(response?.['detail'] ?? '')
  return { status, response: { ...response, detail: `The resource was created, but not completed: ${detail}` } }
}

/** A referenced resource was not created. If the resource itself was, its location shows it. */
const conflict = (created: BulkOutcome = { status: 409 }, bulkId?: string): BulkOutcome => ({
  location: created.location,
  ...failure(
    409,
    `The resource ${bulkId === undefined ? 'that' : `with the bulkId ${quoted(bulkId)}, which`} this operation refers to, was not created. Correct the operation that creates it first.`,
  ),
})

function unknownReference(bulkId: string): BulkOutcome {
  const remedy = 'Add the POST that creates it, or send the id of an existing resource.'
  return failure(400, `No operation of this request has the bulkId ${quoted(bulkId)}. ${remedy}`)
}

const failure = (status: 400 | 409, detail: string): BulkOutcome => ({
  status,
  response: {
    schemas: [errorSchema],
    status: String(status),
    ...(status === 400 ? { scimType: 'invalidValue' } : {}),
    detail,
  },
})

/** `bulkId:x` in place of an id refers to the resource that the operation with bulkId x creates (RFC 7644 3.7.2). */
const prefix = 'bulkId:'

/** The bulkIds that a value refers to. The parser of the body limits the depth, and so the recursion. */
export function referencesIn(value: JsonValue, into = new Set<string>()): Set<string> {
  if (typeof value === 'string') {
    if (value.startsWith(prefix)) into.add(value.slice(prefix.length))
  } else if (Array.isArray(value)) {
    for (const item of value) referencesIn(item, into)
  } else if (isJsonObject(value)) {
    for (const item of Object.values(value)) referencesIn(item, into)
  }
  return into
}

/** Replaces the references whose ids are known. */
export function resolveReferences(value: JsonValue, ids: ReadonlyMap<string, string>): JsonValue {
  if (typeof value === 'string') {
    return value.startsWith(prefix) ? (ids.get(value.slice(prefix.length)) ?? value) : value
  }
  if (Array.isArray(value)) return value.map((item: JsonValue) => resolveReferences(item, ids))
  return isJsonObject(value) ? resolveObject(value, ids) : value
}

const resolveObject = (object: JsonObject, ids: ReadonlyMap<string, string>): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([name, item]) => [name, resolveReferences(item, ids)]))

/** The bulkId at the end of a path. */
export function pathReference(path: string): string | undefined {
  const last = path.slice(path.lastIndexOf('/') + 1)
  const match = /^bulkId(?::|%3A)(.*)$/is.exec(last)?.[1]
  if (match === undefined) return undefined
  try {
    return decodeURIComponent(match)
  } catch {
    return match
  }
}

export const resolvePath = (path: string, id: string): string =>
  path.slice(0, path.lastIndexOf('/') + 1) + encodeURIComponent(id)

interface Deferred {
  /** The part that can be created now. */
  readonly data: JsonObject
  /** Operations of a PATCH that add the rest. */
  readonly operations: readonly JsonObject[]
}

/** Splits off what refers to resources that do not exist yet: whole attributes, or single values of a list. */
export function deferReferences(data: JsonObject, open: ReadonlySet<string>): Deferred {
  const operations: JsonObject[] = []
  const part = (object: JsonObject, path: (name: string) => string, outer: boolean): JsonObject =>
    Object.fromEntries(
      Object.entries(object).flatMap(([name, value]): [string, JsonValue][] => {
        if (!refers(value, open)) return [[name, value]]
        if (outer && name.includes(':') && isJsonObject(value)) {
          return [[name, part(value, (inner) => `${name}:${inner}`, false)]]
        }
        const [now, later] = Array.isArray(value) ? divide(value, open) : [undefined, value]
        operations.push({ op: 'add', path: path(name), value: later })
        return now === undefined || now.length === 0 ? [] : [[name, now]]
      }),
    )
  return { data: part(data, (name) => name, true), operations }
}

function divide(list: readonly JsonValue[], open: ReadonlySet<string>): [JsonValue[], JsonValue[]] {
  return [list.filter((item) => !refers(item, open)), list.filter((item) => refers(item, open))]
}

const refers = (value: JsonValue, open: ReadonlySet<string>): boolean => !referencesIn(value).isDisjointFrom(open)

export const bulkRequestSchema = 'urn:ietf:params:scim:api:messages:2.0:BulkRequest'

export const maxBulkOperations = 1000
export const maxBulkPayload = 4 * 1024 * 1024
const maxPathLength = 8192

const methods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const
type BulkMethod = (typeof methods)[number]

export interface BulkOperation {
  readonly method: BulkMethod
  /** Below the service's address, with its slash. */
  readonly path: string
  /** Other operations can refer to the created resource by it. */
  readonly bulkId: string | undefined
  /** As in If-Match. */
  readonly version: string | undefined
  /** Undefined for DELETE only. */
  readonly data: JsonObject | undefined
}

interface BulkRequest {
  readonly operations: readonly BulkOperation[]
  /** After how many errors to stop; never when absent. */
  readonly failOnErrors: number | undefined
}

/** RFC 7644 3.7. Throws BODY_TOO_LARGE, invalidSyntax or invalidValue; no operation is performed then. */
export function readBulkRequest(body: JsonValue): BulkRequest {
  const message = requireMessageOf(body, bulkRequestSchema)
  refuseDryRunMember(message)
  const failOnErrors = wholeMember(message, 'failOnErrors')
  if (failOnErrors !== undefined && failOnErrors < 0)
    throw scimError('invalidValue', 'failOnErrors must not be negative.')
  const list = member(message, 'Operations')
  if (!Array.isArray(list)) throw scimError('invalidSyntax', 'Operations is required: a list of operations.')
  if (list.length > maxBulkOperations) throw tooLarge(`maxOperations (${maxBulkOperations})`)
  const operations = list.map(readOperation)
  const seen = new Set<string>()
  for (const { bulkId, method } of operations) {
    if (bulkId === undefined || method !== 'POST') continue
    if (seen.has(bulkId))
      throw scimError('invalidValue', `bulkId: two operations have ${quoted(bulkId)}. Give each its own.`)
    seen.add(bulkId)
  }
  return { operations, failOnErrors }
}

/** RFC 7644 3.7.4. */
export const tooLarge = (limit: string, cause?: unknown): GatewayError =>
  new GatewayError('BODY_TOO_LARGE', `a bulk request exceeds ${limit}`, {
    publicText: `The size of the bulk operation exceeds the ${limit}. Split the request.`,
    cause,
  })

function readOperation(entry: JsonValue): BulkOperation {
  if (!isJsonObject(entry)) throw scimError('invalidSyntax', 'An operation must be an object.')
  const word = textMember(entry, 'method')?.toUpperCase()
  const method = methods.find((known) => known === word)
  if (method === undefined) throw scimError('invalidValue', 'method must be POST, PUT, PATCH or DELETE.')
  const path = textMember(entry, 'path')
  if (path === undefined || !path.startsWith('/') || path.length > maxPathLength) {
    throw scimError('invalidValue', `path must start with a slash and have at most ${maxPathLength} characters.`)
  }
  const bulkId = textMember(entry, 'bulkId')
  if (method === 'POST' && (bulkId === undefined || bulkId === '')) {
    throw scimError('invalidValue', 'Operations: a POST needs a bulkId.')
  }
  const version = textMember(entry, 'version')
  return { method, path, bulkId, version, data: readData(method, member(entry, 'data')) }
}

function readData(method: BulkMethod, data: JsonValue | undefined): JsonObject | undefined {
  if (method === 'DELETE') return undefined
  if (isJsonObject(data)) return data
  // RFC 7644 3.7.3 shows the operations of a PATCH without their envelope.
  if (method === 'PATCH' && Array.isArray(data)) return { schemas: [patchSchema], Operations: data }
  throw scimError('invalidSyntax', `Operations: ${method} needs data, an object.`)
}
