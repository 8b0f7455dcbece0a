import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'
import { issuerSite } from '#testing/sts/issuer-site.ts'
import { invalidate } from './key-keeper.ts'
import { type ConfigMapObjects, configMapPublisher, folderPublisher, issuerFiles } from './publishers.ts'

const issuer = 'https://issuer.example.com/aws'
const files = issuerFiles({
  discovery: { issuer, jwks_uri: `${issuer}/certs` },
  keys: { keys: [{ kid: 'a' }] },
  maxAgeSeconds: 300,
})
const signal = () => AbortSignal.timeout(5000)

test('the keys come first, with a type and a lifetime', () => {
  expect(files.map(({ path }) => path)).toEqual(['certs', '.well-known/openid-configuration'])
  expect(new Set(files.map(({ contentType, cacheControl }) => `${contentType}; ${cacheControl}`))).toEqual(
    new Set(['application/json; public, max-age=300']),
  )
})

describe('a folder', () => {
  test('has both complete documents, readable by everyone, and nothing else', async () => {
    const folder = join(temporaryFolder(), 'site')
    await folderPublisher(folder).put(files, signal())
    expect(JSON.parse(await readFile(join(folder, 'certs'), 'utf8'))).toEqual({ keys: [{ kid: 'a' }] })
    expect((await readdir(folder, { recursive: true })).sort()).toEqual([
      '.well-known',
      '.well-known/openid-configuration',
      'certs',
    ])
    expect((await stat(join(folder, 'certs'))).mode & 0o777).toBe(0o644 & ~process.umask())
  })

  test('is never seen half written', async () => {
    const folder = temporaryFolder()
    const large = (letter: string) =>
      files.map((file) => ({ ...file, text: JSON.stringify({ keys: letter.repeat(200_000) }) }))
    await folderPublisher(folder).put(large('a'), signal())
    let writing = true
    const writes = (async () => {
      for (const letter of ['b', 'c', 'd', 'e', 'f']) await folderPublisher(folder).put(large(letter), signal())
      writing = false
    })()
    let reads = 0
    while (writing) {
      const { keys } = JSON.parse(await readFile(join(folder, 'certs'), 'utf8')) as { keys: string }
      expect(keys).toHaveLength(200_000)
      expect(new Set(keys).size).toBe(1)
      reads++
    }
    await writes
    expect(reads).toBeGreaterThan(0)
  })

  test("that can't be written is an error, and leaves no drafts", async () => {
    const folder = temporaryFolder()
    await mkdir(join(folder, 'certs', 'in-the-way'), { recursive: true })
    await expect(folderPublisher(folder).put(files, signal())).rejects.toThrow()
    expect(await readdir(folder)).toEqual(['certs'])
    await writeFile(join(folder, 'file'), '')
    await expect(folderPublisher(join(folder, 'file')).put(files, signal())).rejects.toThrow()
  })
})

/** One ConfigMap, with the API server's rule about versions. */
class FakeObjects implements ConfigMapObjects {
  content: Record<string, unknown> | undefined
  version = 1
  /** Concurrent writes between our read and our write. */
  races = 0

  async get() {
    if (this.content === undefined) return undefined
    return { metadata: { resourceVersion: String(this.version) }, content: this.content }
  }

  async create(_resource: object, object: Readonly<Record<string, unknown>>) {
    if (this.races-- > 0) {
      this.content = { data: { other: 'x' }, metadata: { labels: { a: 'b' } } }
      throw new GatewayError('CONFLICT', 'there is one')
    }
    this.content = { ...object }
  }

  async replace(_resource: object, _name: string, object: Readonly<Record<string, unknown>>) {
    const { resourceVersion } = object['metadata'] as { resourceVersion: string }
    if (this.races-- > 0) this.version++
    if (resourceVersion !== String(this.version)) throw new GatewayError('VERSION_MISMATCH', 'changed')
    this.content = { ...object }
    this.version++
  }
}

describe('a ConfigMap', () => {
  const destination = { type: 'configmap', target: 'k8s', namespace: 'sts', name: 'issuer' } as const
  const put = (objects: FakeObjects) => configMapPublisher(destination, objects).put(files, signal())
  const documents = { certs: files[0]?.text, 'openid-configuration': files[1]?.text }

  test('is created, and changed without losing data of others', async () => {
    const objects = new FakeObjects()
    await put(objects)
    expect(objects.content).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'issuer', namespace: 'sts' },
      data: documents,
    })
    objects.content = { data: { other: 'x', certs: 'old' }, metadata: { labels: { a: 'b' } } }
    await put(objects)
    expect(objects.content).toMatchObject({ data: { ...documents, other: 'x' }, metadata: { labels: { a: 'b' } } })
  })

  test('is written again after a conflict, but not forever', async () => {
    const objects = new FakeObjects()
    objects.races = 2
    await put(objects)
    expect(objects.content).toMatchObject({ data: { ...documents, other: 'x' } })
    objects.races = 99
    await expect(put(objects)).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  })
})

describe('a cache', () => {
  test('gets the paths, with the secret', async () => {
    const site = await issuerSite(temporaryFolder())
    site.override = (_path, answer) => answer.writeHead(202).end()
    await invalidate({ url: `${site.url}/purge`, secret: 'Bearer s' }, issuer, files, signal())
    expect(site.calls).toEqual([
      {
        method: 'POST',
        path: '/purge',
        body: JSON.stringify({ issuer, paths: ['/aws/certs', '/aws/.well-known/openid-configuration'] }),
        authorization: 'Bearer s',
      },
    ])
  })

  test('C7: that refuses or redirects is an error without the secret, which is sent nowhere else', async () => {
    const site = await issuerSite(temporaryFolder())
    for (const status of [302, 403, 500]) {
      site.override = (_path, answer) => answer.writeHead(status, { location: '/elsewhere' }).end()
      const call = invalidate({ url: site.url, secret: 'hidden' }, issuer, files, signal())
      await expect(call).rejects.toThrow(`answered ${status}`)
      await expect(call).rejects.not.toThrow('hidden')
    }
    expect(site.calls).toHaveLength(3)
    await expect(invalidate({ url: 'http://cdn.example.com' }, issuer, files, signal())).rejects.toThrow('https')
  })

  test('C7: with an untrusted certificate gets no secret', async () => {
    const calls: string[] = []
    const server = createServer({ cert: testServerCertificate, key: testServerKey }, (request, answer) => {
      calls.push(request.headers.authorization ?? '')
      answer.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    await expect(
      invalidate({ url: `https://127.0.0.1:${port}`, secret: 's' }, issuer, files, signal()),
    ).rejects.toThrow()
    expect(calls).toEqual([])
  })
})
