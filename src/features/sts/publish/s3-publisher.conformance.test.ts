import S3rver from 's3rver'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { S3Destination } from '#config/configuration/token-keys.ts'
import { OutgoingProxies } from '#protocols/http/outgoing-proxy.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { startForwardProxy } from '#testing/servers/forward-proxy.ts'
import { issuerFiles, s3Publisher } from './publishers.ts'

const files = issuerFiles({ discovery: { issuer: 'i' }, keys: { keys: [{ kid: 'a' }] }, maxAgeSeconds: 300 })
const signal = () => AbortSignal.timeout(10_000)

let endpoint: string

beforeEach(async () => {
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory: temporaryFolder(),
    configureBuckets: [{ name: 'issuer-docs', configs: [] }],
  })
  const { port } = await server.run()
  onTestFinished(async () => {
    await server.close()
  })
  endpoint = `http://127.0.0.1:${port}`
})

const destination = (more: Partial<S3Destination> = {}): S3Destination => ({
  type: 's3',
  bucket: 'issuer-docs',
  prefix: 'team/aws',
  region: 'us-east-1',
  endpoint,
  pathStyle: true,
  credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
  ...more,
})

describe('a bucket', () => {
  test.each([
    ['team/aws', '/team/aws'],
    ['', ''],
  ])('has both documents below "%s", with their types and lifetimes', async (prefix, path) => {
    await s3Publisher(destination({ prefix })).put(files, signal())
    for (const { path: name, text } of files) {
      const answer = await fetch(`${endpoint}/issuer-docs${path}/${name}`)
      expect(answer.status).toBe(200)
      expect(await answer.text()).toBe(text)
      expect(answer.headers.get('content-type')).toBe('application/json')
      expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
    }
  })

  test('is reached through the proxy of the environment', async () => {
    const proxy = await startForwardProxy({ target: 1, refusal: 403 })
    onTestFinished(() => proxy.close())
    const proxies = new OutgoingProxies({ HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`, NO_PROXY: '.internal' })
    const far = destination({ endpoint: 'https://s3.example.com' })
    await expect(s3Publisher(far, proxies).put(files, signal())).rejects.toThrow(
      `the proxy http://127.0.0.1:${proxy.port} opened no connection to s3.example.com:443: it answered 403`,
    )
    expect(new Set(proxy.seen)).toEqual(new Set(['CONNECT s3.example.com:443']))
  })

  test('is replaced as a whole', async () => {
    await s3Publisher(destination()).put(files, signal())
    const changed = files.map((file) => ({ ...file, text: '{}' }))
    await s3Publisher(destination()).put(changed, signal())
    expect(await (await fetch(`${endpoint}/issuer-docs/team/aws/certs`)).text()).toBe('{}')
  })

  test('that is missing, forbidden or unreachable is an error without the secret', async () => {
    const wrong = { accessKeyId: 'nobody', secretAccessKey: 'not-the-secret' }
    const refused = s3Publisher(destination({ credentials: wrong })).put(files, signal())
    await expect(refused).rejects.toMatchObject({ name: 'InvalidAccessKeyId' })
    await expect(refused).rejects.not.toThrow('not-the-secret')
    const missing = s3Publisher(destination({ bucket: 'another-bucket' })).put(files, signal())
    await expect(missing).rejects.toMatchObject({ name: 'NoSuchBucket' })
    expect((await fetch(`${endpoint}/issuer-docs/team/aws/certs`)).status).toBe(404)
    await expect(s3Publisher(destination({ endpoint: 'http://127.0.0.1:1' })).put(files, signal())).rejects.toThrow()
  })

  test('is not waited for after the timeout', async () => {
    await expect(s3Publisher(destination()).put(files, AbortSignal.abort())).rejects.toThrow()
  })
})
