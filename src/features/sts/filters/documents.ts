import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { IssuerDocuments } from '#config/configuration/token-keys.ts'
import type { StsHost } from '#features/sts/host.ts'
import { issuerFiles } from '#features/sts/publish/publishers.ts'
import type { TokenIssuing } from '#features/sts/service/token-issuing.ts'
import { GatewayError } from '#kernel/errors.ts'
import { keySetSchema, placeAtSegment } from '#sdk/api/api-description.ts'
import { ServedApi } from '#sdk/api/served-api.ts'
import { mainErrors } from '#sdk/contract/errors.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import { choice, text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** The documents of a token endpoint's issuer. */
export default defineFilter({
  className: 'filters.StsDocuments',
  ...withParameters({
    endpoint: text({
      about: 'The name of an endpoint of `sts.endpoints`.',
      required: true,
      reference: 'token endpoint',
    }),
    document: choice(['both', 'discovery', 'keys', 'bundle'], {
      about:
        'Which document to serve: `both` in one answer for a publisher, or `discovery`, `keys`, or the `bundle` of a SPIFFE trust domain as published.',
      fallback: 'both',
    }),
  }),
  answers: true,
  summarize: ({ endpoint, document }) => [{ label: 'documents of', value: `${endpoint} (${document})` }],
  api: ({ document }) => issuerDocumentApi(document).served(placeAtSegment),
  create: ({ endpoint, document }, { tokens }: StsHost) => {
    if (tokens === undefined) throw new Error('there is no token service: no sts.endpoints are configured')
    return issuerDocumentApi(document).filter({ endpoint, tokens })
  },
})

/** `files` returns name, type and text of each file to publish at the issuer's host. */
function bothOf(documents: IssuerDocuments, format: string | null): unknown {
  const { discovery, keys, bundle } = documents
  const ofDomain = bundle === undefined ? {} : { bundle }
  if (format === null) return { discovery, keys, ...ofDomain }
  if (format !== 'files') {
    throw new GatewayError('BAD_REQUEST', `the format "${format}"`, { publicText: 'The only format is "files".' })
  }
  const files = issuerFiles(documents).map(({ text: content, ...file }) => ({ ...file, content }))
  return { files }
}

const cacheControl = ({ maxAgeSeconds }: IssuerDocuments): string => `public, max-age=${maxAgeSeconds}`

function answer(request: GatewayRequest, content: unknown, caching: string): GatewayResponse {
  const body = JSON.stringify(content)
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const headers = { 'content-type': 'application/json', 'cache-control': caching, etag }
  const known = (header(request, 'if-none-match') ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (known.includes(etag)) return { status: 304, headers }
  return { status: 200, headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) }, body }
}

const discoverySchema = z.looseObject({ issuer: z.string(), jwks_uri: z.string() })

const bundleSchema = keySetSchema.extend({ spiffe_refresh_hint: z.int().describe('Seconds') })

const issuerDocuments = {
  both: {
    summary: 'All documents of the issuer, for a publisher',
    query: { format: '"files": name, type and text of each file to publish' },
    schema: z.union([
      z.object({ discovery: discoverySchema, keys: keySetSchema, bundle: bundleSchema.optional() }),
      z.object({
        files: z.array(
          z.object({ path: z.string(), contentType: z.string(), cacheControl: z.string(), content: z.string() }),
        ),
      }),
    ]),
  },
  discovery: { summary: 'The discovery document of the issuer', query: {}, schema: discoverySchema },
  keys: { summary: 'The public keys of the issuer', query: {}, schema: keySetSchema },
  bundle: { summary: 'The keys of a SPIFFE trust domain', query: {}, schema: bundleSchema },
} as const

interface PublishedIssuer {
  readonly endpoint: string
  readonly tokens: Pick<TokenIssuing, 'documents'>
}

function issuerDocumentApi(document: keyof typeof issuerDocuments): ServedApi<PublishedIssuer> {
  const { summary, query, schema } = issuerDocuments[document]
  return new ServedApi({
    title: 'Token issuer documents',
    version: '1.0.0',
    answers: { IssuerDocument: schema, Errors: mainErrors },
    bodies: {},
    failure: { description: 'What is wrong', schema: 'Errors' },
    operations: {
      getDocument: {
        route: 'GET',
        summary,
        query,
        answer: 'IssuerDocument',
        answers: { '304': { description: 'It has the tag of If-None-Match' } },
        handle: async ({ endpoint, tokens }, { request }) => {
          const documents = await tokens.documents(endpoint)
          const content = document === 'both' ? bothOf(documents, request.query.get('format')) : documents[document]
          if (content === undefined) throw new GatewayError('NOT_FOUND', `endpoint "${endpoint}" is no trust domain`)
          return answer(request, content, cacheControl(documents))
        },
      },
    },
  })
}
