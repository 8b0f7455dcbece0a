import { catalog } from '#catalog/catalog.ts'
import { loadConfiguration } from '#config/load/load.ts'
import { servedApis } from '#requests/pipeline/served-apis.ts'

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly minimum?: number
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Schema }>> }
  readonly responses?: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>
}

interface Document {
  readonly servers?: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}

export interface DescribedRequest {
  readonly method: string
  readonly path: string
  readonly type?: string
  readonly body?: unknown
}

/** Values of optional query parameters; the others are left out. */
const queryValues: Readonly<Record<string, string>> = {
  ...{
    limit: '5',
    count: '5',
    startIndex: '1',
    sortBy: 'displayName',
    q: 'ada',
    kind: 'person',
    from: '7d',
    by: 'day',
  },
  ...{ format: 'csv', state: 'waiting', name: 'ada', overdue: '1d', changes: 'true', token: 'a.b.c', search: 'a' },
}

const methods = ['get', 'post', 'put', 'patch', 'delete']

/** A request of every operation of every API in the configuration's documents, without those that stream events. */
export async function describedRequests(folder: string, id: string): Promise<readonly DescribedRequest[]> {
  const environment = { GATEHOUSE_URL: 'http://127.0.0.1' }
  const { configuration } = await loadConfiguration({ folder, catalog, environment, strictSecrets: true })
  if (configuration === undefined) throw new Error(`${folder} does not load`)
  return servedApis(configuration).flatMap(({ api, mount }) => {
    const document = api.documents.openApi({ origin: 'http://x', ...api.place(mount) }) as unknown as Document
    const base = new URL(document.servers?.[0]?.url ?? 'http://x').pathname.replace(/\/$/, '')
    return Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.entries(operations)
        .filter(([method, operation]) => methods.includes(method) && !streams(operation))
        .map(([method, operation]) => requestOf(method, base + path, operation, id, document)),
    )
  })
}

const streams = ({ responses = {} }: Operation): boolean =>
  Object.values(responses).some(({ content = {} }) => 'text/event-stream' in content)

function requestOf(
  method: string,
  path: string,
  operation: Operation,
  id: string,
  document: Document,
): DescribedRequest {
  const { parameters = [], requestBody } = operation
  const query = parameters
    .filter(({ in: place, name, required }) => place === 'query' && (required === true || name in queryValues))
    .map(({ name }) => `${name}=${queryValues[name] ?? 'ada'}`)
  const place = path.replaceAll(/\{[^}]*\}/g, id) + (query.length === 0 ? '' : `?${query.join('&')}`)
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const body = content === undefined ? {} : { type: type ?? '', body: exampleOf(content.schema ?? {}, id, document) }
  return { method: method.toUpperCase(), path: place, ...body }
}

/** A value that the schema accepts, or nearly. */
function exampleOf(schema: Schema, id: string, document: Document, depth = 0): unknown {
  const { $ref, type, anyOf, oneOf, properties = {}, items } = schema
  if (depth > 8) return null
  const within = (inner: Schema): unknown => exampleOf(inner, id, document, depth + 1)
  if ($ref !== undefined) return within(document.components?.schemas?.[$ref.split('/').at(-1) ?? ''] ?? {})
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  const [choice] = anyOf ?? oneOf ?? []
  if (choice !== undefined) return within(choice)
  switch (typeof type === 'string' ? type : type?.[0]) {
    case 'object':
      return Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, within(inner)]))
    case 'array':
      return items === undefined ? [] : [within(items)]
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return true
    default:
      return 'ada'
  }
}
