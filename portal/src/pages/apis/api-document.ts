/** What the pages show of an OpenAPI 3.1 document. Unknown parts are left out, so that no document breaks a page. */
export interface ApiDocument {
  readonly title: string
  readonly version: string
  readonly servers: readonly string[]
  /** Undefined if the document does not say. */
  readonly credentials: readonly Credential[] | undefined
  /** Groups of operations, in the order of the document. */
  readonly groups: readonly OperationGroup[]
  /** The schema that a reference names. */
  readonly schemas: Readonly<Record<string, Json>>
}

export interface OperationGroup {
  /** Empty for operations without a tag. */
  readonly name: string
  readonly operations: readonly Operation[]
}

export interface Operation {
  /** Unique in the document, for addresses. */
  readonly id: string
  /** Upper case. */
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  readonly body: Content | undefined
  readonly responses: readonly ApiResponse[]
}

export interface Parameter {
  readonly name: string
  /** Such as `path` or `query`. */
  readonly place: string
  readonly required: boolean
  readonly description: string
  readonly schema: Json
}

/** A body and its media type. */
export interface Content {
  readonly type: string
  readonly schema: Json
}

export interface ApiResponse {
  /** A status, or `default` for all others. */
  readonly status: string
  readonly description: string
  readonly content: Content | undefined
}

export type Credential = { readonly kind: 'bearer' } | { readonly kind: 'cookie'; readonly name: string }

export type Json = unknown

const methods = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options', 'trace']

export function readApiDocument(json: Json): ApiDocument {
  const info = member(json, 'info')
  const components = member(json, 'components')
  return {
    title: text(member(info, 'title')),
    version: text(member(info, 'version')),
    servers: list(member(json, 'servers')).map((one) => text(member(one, 'url'))),
    credentials: readCredentials(member(json, 'security'), member(components, 'securitySchemes')),
    groups: readGroups(json),
    schemas: record(member(components, 'schemas')),
  }
}

function readCredentials(security: Json, schemes: Json): readonly Credential[] | undefined {
  if (!Array.isArray(security)) return undefined
  const names = security.flatMap((one) => Object.keys(record(one)))
  return names.flatMap((name): Credential[] => {
    const scheme = member(schemes, name)
    if (member(scheme, 'scheme') === 'bearer') return [{ kind: 'bearer' }]
    return member(scheme, 'in') === 'cookie' ? [{ kind: 'cookie', name: text(member(scheme, 'name')) }] : []
  })
}

function readGroups(json: Json): readonly OperationGroup[] {
  const groups = new Map<string, Operation[]>(
    list(member(json, 'tags')).map((tag) => [text(member(tag, 'name')), []] as const),
  )
  for (const [path, item] of Object.entries(record(member(json, 'paths')))) {
    for (const method of methods) {
      const operation = member(item, method)
      if (operation === undefined) continue
      const name = text(list(member(operation, 'tags'))[0])
      const group = groups.get(name) ?? []
      group.push(readOperation(method, path, operation))
      groups.set(name, group)
    }
  }
  return Array.from(groups, ([name, operations]) => ({ name, operations })).filter(
    ({ operations }) => operations.length > 0,
  )
}

function readOperation(method: string, path: string, json: Json): Operation {
  return {
    id: text(member(json, 'operationId')) || `${method} ${path}`,
    method: method.toUpperCase(),
    path,
    summary: text(member(json, 'summary')),
    description: text(member(json, 'description')),
    parameters: list(member(json, 'parameters')).map((one) => ({
      name: text(member(one, 'name')),
      place: text(member(one, 'in')),
      required: member(one, 'required') === true,
      description: text(member(one, 'description')),
      schema: member(one, 'schema'),
    })),
    body: readContent(member(json, 'requestBody')),
    responses: Object.entries(record(member(json, 'responses'))).map(([status, one]) => ({
      status,
      description: text(member(one, 'description')),
      content: readContent(one),
    })),
  }
}

/** The first media type. */
function readContent(json: Json): Content | undefined {
  const [first] = Object.entries(record(member(json, 'content')))
  return first === undefined ? undefined : { type: first[0], schema: member(first[1], 'schema') }
}

export const member = (json: Json, name: string): Json => {
  const object = record(json)
  return Object.hasOwn(object, name) ? object[name] : undefined
}

export const record = (json: Json): Readonly<Record<string, Json>> =>
  typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as Record<string, Json>) : {}

export const list = (json: Json): readonly Json[] => (Array.isArray(json) ? json : [])

export const text = (json: Json): string => (typeof json === 'string' ? json : '')
