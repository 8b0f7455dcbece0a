import type { ApiEntry, ApiList } from '#features/portal/contract/main-apis.ts'
import { isAdministrator, type MainParts } from '#features/portal/front/main-parts.ts'
import type { Subject } from '#identity/subject.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { JsonObject } from '#kernel/json.ts'
import { apiFile } from '#sdk/api/api-description.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { ApiCredential, ApiDocuments, ApiFormat, ServedApi } from '#sdk/filter/filter-api.ts'
import { hostOrigins } from '#sdk/http/host-origins.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'

export const apiOperations = {
  listApis: {
    summary: 'The APIs of the running configuration that the caller may know of',
    answer: 'ApiList',
    handle: listApis,
  },
  getApiDocument: {
    summary: 'A document of one of them: openapi.json, or swagger.json where the list names it',
    answer: 'ApiDocument',
    failures: { '404': 'The caller knows no such API or document' },
    handle: showApiDocument,
  },
} satisfies OperationTable<MainParts>

/** An API that the caller may know of, with the documents for this caller. */
interface KnownApi {
  readonly served: ServedApi
  readonly documents: ApiDocuments
}

const atOnce = 8

/** Administrators know all APIs; other users know those that are for users, where the rules of the URL admit them. */
async function knownApis(parts: MainParts, subject: Subject): Promise<readonly KnownApi[]> {
  const { host, visibility } = parts
  const apis = host.apis ?? []
  if (await isAdministrator(parts, subject)) return apis.map((served) => ({ served, documents: served.api.documents }))
  const known = await inParallel(apis, atOnce, async (served) => {
    const documents = served.api.userDocuments
    return documents !== undefined && (await visibility.allows(subject, served.rules)) ? [{ served, documents }] : []
  })
  return known.flat()
}

/** The APIs of the running configuration that the caller may know of. */
async function listApis(parts: MainParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const apis = (await knownApis(parts, subject)).map(({ served }): ApiEntry => {
    const { name, application, credentials, api } = served
    return {
      name,
      title: api.title,
      application,
      addresses: addressesOf(served, request),
      ...(credentials === undefined ? {} : { authentication: credentials.map(({ kind }) => kind) }),
      documents: api.formats.map((format) => apiFile[format]),
    }
  })
  const byTitle = apis.toSorted((a, b) => a.title.localeCompare(b.title, 'en') || (a.name < b.name ? -1 : 1))
  return answer({ apis: byTitle } satisfies ApiList)
}

/** A document of one of them. */
async function showApiDocument(
  parts: MainParts,
  { request, subject }: Exchange,
  name = '',
  file = '',
): Promise<GatewayResponse> {
  const known = (await knownApis(parts, subject)).find(({ served }) => served.name === name)
  const format = known?.served.api.formats.find((one) => apiFile[one] === file)
  if (known === undefined || format === undefined) {
    throw notFound(`no API document "${name.slice(0, 80)}/${file.slice(0, 80)}" for "${subject.uid}"`)
  }
  return answer(documentOf(known, format, request))
}

function documentOf({ served, documents }: KnownApi, format: ApiFormat, request: GatewayRequest): JsonObject {
  const { api, mount, credentials } = served
  const [origin = request.origin, ...others] = hostOrigins(served.hosts, request)
  const place = { origin, ...api.place(mount) }
  if (format === 'swagger') return documents.swagger(place)
  const document = documents.openApi(place)
  return {
    ...document,
    servers: [origin, ...others].map((one) => ({ url: `${one}${place.base}` })),
    ...(credentials === undefined ? {} : securityOf(document, credentials)),
  }
}

const schemes = {
  bearer: () => ({ type: 'http', scheme: 'bearer' }),
  session: ({ cookie }) => ({
    type: 'apiKey',
    in: 'cookie',
    name: cookie,
    description:
      'The session of a signed-in user. Changes also need JSON from a page of the same origin, or a header X-Requested-With.',
  }),
} satisfies { readonly [K in ApiCredential['kind']]: (one: Extract<ApiCredential, { kind: K }>) => JsonObject }

/** One of the credentials is enough. */
function securityOf({ components }: JsonObject, credentials: readonly ApiCredential[]): JsonObject {
  if (credentials.length === 0) return { security: [] }
  const named = credentials.map((one) => [one.kind, one.kind === 'session' ? schemes.session(one) : schemes.bearer()])
  return {
    security: credentials.map(({ kind }) => ({ [kind]: [] })),
    components: { ...(components as JsonObject | undefined), securitySchemes: Object.fromEntries(named) },
  }
}

const addressesOf = (served: ServedApi, request: GatewayRequest): string[] => {
  const { base, prefix } = served.api.place(served.mount)
  return hostOrigins(served.hosts, request).map((origin) => `${origin}${base}${prefix}`)
}
