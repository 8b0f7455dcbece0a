import { isLoopback, parseIssuerUrl } from '#kernel/address.ts'
import { GatewayError } from '#kernel/errors.ts'
import { publishedKey } from '#protocols/jwt/signing.ts'
import { allowMethods } from '#sdk/api/routes.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  issuer: text({
    about:
      'The address that this filter is mounted at, such as `http://127.0.0.1:8080/dev-issuer`, without a slash at its end.',
    required: true,
  }),
  keyName: text({
    about: 'The signing key, `keys/<name>.jwk` of the data folder; created when absent.',
    fallback: 'development-issuer',
  }),
}

/** Publishes the key of `gatehouse token mint`, so that developers can create tokens by hand. */
export default defineFilter({
  className: 'filters.DevelopmentIssuer',
  parameters,
  answers: true,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    const problem = given.issuer === '' ? undefined : problemOf(given.issuer)
    if (problem !== undefined) issues.error(params.pathOf('issuer', 0), `"issuer": ${problem}`)
    return given
  },
  summarize: ({ issuer }) => [{ label: 'issuer', value: issuer }],
  create: async ({ issuer, keyName }, host) => {
    const { publicKey } = await host.keys.signingKey(keyName)
    const documents: ReadonlyMap<string, string> = new Map([
      ['/.well-known/openid-configuration', JSON.stringify(discovery(issuer))],
      ['/certs', JSON.stringify({ keys: [await publishedKey(publicKey)] })],
    ])
    return {
      async handle({ request, pathInfo }) {
        const document = documents.get(pathInfo)
        if (document === undefined) throw new GatewayError('NOT_FOUND', `the issuer has nothing at "${pathInfo}"`)
        allowMethods(request.method, 'GET', 'HEAD')
        return answer(document, request.method === 'HEAD')
      },
    }
  },
})

function problemOf(issuer: string): string | undefined {
  try {
    if (!isLoopback(parseIssuerUrl(issuer)))
      return 'a development issuer must be on this machine, such as http://127.0.0.1'
    return issuer.endsWith('/') ? 'must not end with a slash' : undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const discovery = (issuer: string) => ({
  issuer,
  jwks_uri: `${issuer}/certs`,
  response_types_supported: ['id_token'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
})

function answer(document: string, headOnly: boolean): GatewayResponse {
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(document)),
    'cache-control': 'public, max-age=60',
  }
  return headOnly ? { status: 200, headers } : { status: 200, headers, body: document }
}
