import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface BenchCluster {
  readonly url: string
  /** A bound token of a new pod. */
  token(): string
  readonly reviews: () => number
  close(): Promise<void>
}

const issuer = 'https://kubernetes.default.svc.cluster.local'
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** An API server that signs with ES256, which is cheap, and accepts every token. */
export async function startBenchCluster(): Promise<BenchCluster> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = { ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256', kid: 'bench' }
  let reviews = 0
  const server = createServer(async (request, response) => {
    const answer = (body: object): void => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (request.url === '/.well-known/openid-configuration') return answer({ issuer, jwks_uri: `${issuer}/keys` })
    if (request.url === '/openid/v1/jwks') return answer({ keys: [key] })
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const { spec } = JSON.parse(Buffer.concat(chunks).toString()) as { spec: { token: string; audiences: string[] } }
    reviews++
    const claims = JSON.parse(Buffer.from(spec.token.split('.')[1] ?? '', 'base64url').toString()) as {
      sub: string
      'kubernetes.io': { pod: { name: string; uid: string } }
    }
    const { pod } = claims['kubernetes.io']
    const extra = {
      'authentication.kubernetes.io/pod-name': [pod.name],
      'authentication.kubernetes.io/pod-uid': [pod.uid],
    }
    const user = { username: claims.sub, uid: 'u', groups: ['system:serviceaccounts'], extra }
    answer({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: {},
      status: { authenticated: true, user, audiences: spec.audiences },
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reviews: () => reviews,
    token: () => {
      const now = Math.floor(Date.now() / 1000)
      const content = `${encode({ alg: 'ES256', kid: 'bench' })}.${encode({
        iss: issuer,
        sub: 'system:serviceaccount:shop:cart',
        aud: ['gatehouse-sts'],
        iat: now,
        nbf: now,
        exp: now + 3600,
        jti: randomUUID(),
        'kubernetes.io': {
          namespace: 'shop',
          serviceaccount: { name: 'cart', uid: 'u' },
          pod: { name: 'cart', uid: randomUUID() },
        },
      })}`
      const signature = sign('sha256', Buffer.from(content), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      return `${content}.${signature.toString('base64url')}`
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
