import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'
import { type Consumer, type Presented, refusalsBy } from '#testing/sts/token-consumers.ts'

export interface StandIn {
  readonly url: string
  /** The verdict on each received token, in order; empty if it was accepted. */
  readonly verdicts: string[][]
  /** The call of each token. */
  readonly calls: { readonly path: string; readonly form: URLSearchParams }[]
  close(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly body: string
}

interface Vendor {
  readonly consumer: Consumer
  /** The token in the request of the vendor's client; throws if the vendor's API would not accept it. */
  token(path: string, form: URLSearchParams): string
  /** A document that the client reads before, by its path. */
  document?(origin: string, path: string): object | undefined
  answer(refusals: readonly string[]): Answer
}

const json = (status: number, body: object): Answer => ({
  status,
  type: 'application/json',
  body: JSON.stringify(body),
})

const xml = (status: number, body: string): Answer => ({ status, type: 'text/xml', body })

function expectFields(form: URLSearchParams, fields: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(fields)) {
    if (form.get(name) !== value) throw new Error(`${name} is "${form.get(name)}", not "${value}"`)
  }
}

export const amazonSts: Vendor = {
  consumer: 'aws',
  token: (_, form) => {
    expectFields(form, { Action: 'AssumeRoleWithWebIdentity' })
    if (!/^arn:aws:iam::\d{12}:role\//.test(form.get('RoleArn') ?? '')) throw new Error('no RoleArn')
    return form.get('WebIdentityToken') ?? ''
  },
  answer: (refusals) =>
    refusals.length > 0
      ? xml(
          400,
          '<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code><Message>refused</Message></Error></ErrorResponse>',
        )
      : xml(
          200,
          `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
          <Credentials><AccessKeyId>AKIATEST</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken>
          <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
        ),
}

export const googleSts: Vendor = {
  consumer: 'gcp',
  token: (_, form) => {
    expectFields(form, {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    })
    return form.get('subject_token') ?? ''
  },
  answer: (refusals) =>
    refusals.length > 0
      ? json(400, { error: 'invalid_grant', error_description: 'refused' })
      : json(200, {
          access_token: 'google-token',
          issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          token_type: 'Bearer',
          expires_in: 900,
        }),
}

export const entra: Vendor = {
  consumer: 'azure',
  token: (path, form) => {
    if (!path.endsWith('/oauth2/v2.0/token')) throw new Error(`a token at ${path}`)
    expectFields(form, {
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    })
    return form.get('client_assertion') ?? ''
  },
  document: (origin, path) => {
    const [, tenant] = /^\/([^/]+)\/v2\.0\/\.well-known\/openid-configuration$/.exec(path) ?? []
    if (tenant === undefined) return undefined
    const own = `${origin}/${tenant}`
    return {
      issuer: `${own}/v2.0`,
      authorization_endpoint: `${own}/oauth2/v2.0/authorize`,
      token_endpoint: `${own}/oauth2/v2.0/token`,
      jwks_uri: `${own}/discovery/v2.0/keys`,
    }
  },
  answer: (refusals) =>
    refusals.length > 0
      ? json(401, { error: 'invalid_client', error_description: 'AADSTS70021: refused' })
      : json(200, { access_token: 'entra-token', token_type: 'Bearer', expires_in: 3600, ext_expires_in: 3600 }),
}

/** The vendor's decision about one call of its client. */
export async function decide(
  vendor: Vendor,
  path: string,
  body: string,
  setUp: () => Omit<Presented, 'token' | 'now'>,
): Promise<{ readonly answer: Answer; readonly refusals: string[] }> {
  const token = vendor.token(path, new URLSearchParams(body))
  const refusals = await refusalsBy(vendor.consumer, { ...setUp(), token, now: new Date() })
  return { answer: vendor.answer(refusals), refusals }
}

/** The vendor's endpoint on this machine; optionally over TLS with the certificate of `test-certificates.ts`. */
export async function startStandIn(
  vendor: Vendor,
  setUp: () => Omit<Presented, 'token' | 'now'>,
  { tls = false }: { readonly tls?: boolean } = {},
): Promise<StandIn> {
  const verdicts: string[][] = []
  const calls: { path: string; form: URLSearchParams }[] = []
  let url = ''
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const [path = ''] = (request.url ?? '').split('?')
    const body = Buffer.concat(chunks).toString()
    const document = request.method === 'GET' ? vendor.document?.(url, path) : undefined
    if (document !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
      return
    }
    calls.push({ path, form: new URLSearchParams(body) })
    try {
      const { answer, refusals } = await decide(vendor, path, body, setUp)
      verdicts.push(refusals)
      response.writeHead(answer.status, { 'content-type': answer.type }).end(answer.body)
    } catch (error) {
      verdicts.push([String(error)])
      response.writeHead(400).end(String(error))
    }
  }
  const server = tls
    ? createTlsServer({ key: testServerKey, cert: testServerCertificate }, listener)
    : createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    verdicts,
    calls,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
