import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DryRunRefused, KindNotServed, ObjectMissing } from '#protocols/kubernetes/api-failure.ts'
import { ObjectClient, resourcePath } from '#protocols/kubernetes/object-client.ts'
import { FakeKubernetesApi } from '#testing/kubernetes/fake-kubernetes-api.ts'

const users = { group: 'openunison.tremolo.io', version: 'v1', plural: 'users', namespace: 'ns' }
const ada = { metadata: { name: 'ada', uid: 'u-1', resourceVersion: '7' }, spec: { sub: 'ada' } }

let api: FakeKubernetesApi
let client: ObjectClient

beforeEach(async () => {
  api = await FakeKubernetesApi.start()
  client = await open(4_000)
})
afterEach(async () => {
  client.close()
  await api.close()
})

const open = (timeoutMillis: number): Promise<ObjectClient> =>
  ObjectClient.open(
    { kind: 'address', url: new URL(api.url), token: 'very-secret' },
    { who: 'target "k8s"', timeoutMillis },
  )

const answer = (response: ServerResponse, status: number, body: unknown): void => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json' }).end(text)
}
const always = (status: number, body: unknown): void => {
  api.override = (_request, response) => answer(response, status, body)
}
const status = (reason: string, message = ''): object => ({ kind: 'Status', reason, message })

describe('a refusal', () => {
  test.each<[number, object | string, string]>([
    [400, status('BadRequest', 'strict decoding error: unknown field "spec.x"'), 'BAD_REQUEST'],
    [401, status('Unauthorized'), 'TARGET_FAILED'],
    [403, status('Forbidden'), 'TARGET_FAILED'],
    [404, status('NotFound', 'namespaces "ns" not found'), 'TARGET_FAILED'],
    [404, '404 page not found', 'TARGET_FAILED'],
    [409, status('AlreadyExists'), 'CONFLICT'],
    [409, status('Conflict'), 'VERSION_MISMATCH'],
    [413, status('RequestEntityTooLarge'), 'BAD_REQUEST'],
    [422, status('Invalid'), 'BAD_REQUEST'],
    [429, status('TooManyRequests'), 'TARGET_UNREACHABLE'],
    [500, status('InternalError'), 'TARGET_UNREACHABLE'],
    [500, status('', 'etcdserver: request is too large'), 'BAD_REQUEST'],
    [503, 'no JSON', 'TARGET_UNREACHABLE'],
    [302, '', 'TARGET_FAILED'],
  ])('%i %j is reported by its kind, with the target and without our token', async (code, body, expected) => {
    always(code, body)
    const error = await client.create(users, ada).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: expected, message: expect.stringMatching(/^target "k8s": create users: /) })
    expect(`${error} ${(error as Error).cause}`).not.toContain('very-secret')
  })

  test('a refused dry run has an error of its own', async () => {
    always(400, status('BadRequest', 'admission webhook "w" does not support dry run'))
    const write = client.replace(users, 'ada', ada, { dryRun: true })
    await expect(write).rejects.toBeInstanceOf(DryRunRefused)
    await expect(write).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('the status of an object that is gone has an error of its own', async () => {
    always(404, status('NotFound', 'users "ada" not found'))
    await expect(client.replaceStatus(users, 'ada', ada)).rejects.toBeInstanceOf(ObjectMissing)
    always(404, '404 page not found')
    await expect(client.replaceStatus(users, 'ada', ada)).rejects.toBeInstanceOf(KindNotServed)
  })

  test('a missing object is not a failure; a missing kind is one', async () => {
    always(404, status('NotFound'))
    expect(await client.get(users, 'ada')).toBeUndefined()
    expect(await client.remove(users, 'ada', { uid: 'u-1' })).toBe(false)
    always(404, '404 page not found')
    await expect(client.get(users, 'ada')).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    await expect(client.remove(users, 'ada', { uid: 'u-1' })).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  })
})

describe('no response', () => {
  test.each<[string, unknown]>([
    ['garbage', '{"metadata": '],
    ['nothing', ''],
    ['no object', []],
    ['null', null],
    ['an object without a version', { metadata: { name: 'ada', uid: 'u-1' } }],
    ['metadata of another type', { metadata: { name: 7, uid: 'u-1', resourceVersion: '7' } }],
  ])('%s', async (_case, body) => {
    always(200, body)
    await expect(client.get(users, 'ada')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    await expect(client.list(users, 10)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  })

  test('in time', async () => {
    const impatient = await open(150)
    api.override = () => {}
    await expect(impatient.get(users, 'ada')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE', retryAfter: 2 })
    api.override = (_request, response) => void response.writeHead(200).write('{')
    await expect(impatient.get(users, 'ada')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    impatient.close()
    api.override = (request) => void request.destroy()
    await expect(client.replace(users, 'ada', ada)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  })
})

describe('a list', () => {
  const page = (names: readonly string[], next = ''): object => ({
    metadata: { continue: next },
    items: names.map((name) => ({ metadata: { ...ada.metadata, name } })),
  })

  test('is read page by page, and again if its pages were compacted away', async () => {
    const asked: string[] = []
    api.override = (request, response) => {
      const position = new URL(request.url ?? '', api.url).searchParams.get('continue') ?? ''
      asked.push(position)
      if (position === '') answer(response, 200, page(['a'], 'p&2'))
      else if (asked.length < 3) answer(response, 410, status('Expired'))
      else answer(response, 200, page(['b']))
    }
    expect((await client.list(users, 10)).map(({ metadata }) => metadata.name)).toEqual(['a', 'b'])
    expect(asked).toEqual(['', 'p&2', '', 'p&2'])
  })

  test('is limited', async () => {
    always(200, page(['a', 'b'], 'more'))
    await expect(client.list(users, 10)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    let calls = 0
    api.override = (_request, response) => {
      calls++
      answer(response, 410, status('Expired'))
    }
    await expect(client.list(users, 10)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(calls).toBe(3)
  })
})

test('too much data is rejected unsent', async () => {
  const refused = client.create(users, { spec: 'x'.repeat(1024 * 1024) })
  await expect(refused).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

test('names are single path segments', () => {
  expect(resourcePath({ group: '', version: 'v1', plural: 'pods' })).toBe('/api/v1/pods')
  expect(resourcePath(users, 'a?b#c d:é')).toBe(
    '/apis/openunison.tremolo.io/v1/namespaces/ns/users/a%3Fb%23c%20d%3A%C3%A9',
  )
  for (const name of ['', '.', '..', 'a/b', '%2e%2e', 'x'.repeat(254), '\ud800']) {
    expect(() => resourcePath(users, name)).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
    expect(() => resourcePath({ ...users, namespace: name })).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
  }
})

describe('a call to any path', () => {
  test('returns whatever the server answers', async () => {
    const seen: unknown[] = []
    api.override = (request, response) => {
      seen.push([request.method, request.url, request.headers.authorization, request.headers['content-type']])
      answer(response, 418, 'short')
    }
    expect(await client.call({ method: 'GET', path: '/api/v1/pods?limit=5&labelSelector=a%3Db' })).toMatchObject({
      status: 418,
      body: 'short',
    })
    await client.call({ method: 'PATCH', path: '/x', body: '{}', contentType: 'application/merge-patch+json' })
    expect(seen).toEqual([
      ['GET', '/api/v1/pods?limit=5&labelSelector=a%3Db', 'Bearer very-secret', undefined],
      ['PATCH', '/x', 'Bearer very-secret', 'application/merge-patch+json'],
    ])
  })

  test.each([
    '',
    'api',
    '@evil.test/',
    'https://evil.test/',
    '.evil.test/',
    ':1/',
    '/a b',
    '/a\r\nx: y',
    '/a#b',
    '/a\\b',
    '/api/v1/namespaces/../secrets',
    '/api/v1/namespaces/x/..',
    '/api/v1/namespaces/%2E%2e/secrets',
    '/api/v1/./pods?limit=1',
    '/api/v1/.%2e?limit=1',
  ])('%j is not a path, so nothing is sent', async (path) => {
    api.override = () => expect.unreachable()
    await expect(client.call({ method: 'GET', path })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('cannot leave the path of the server', async () => {
    const below = await ObjectClient.open(
      { kind: 'address', url: new URL(`${api.url}/clusters/a`), token: 'very-secret' },
      { who: 'target "k8s"', timeoutMillis: 4_000 },
    )
    for (const path of ['/../b', '/%2e%2e/b', '/x/../../b']) {
      await expect(below.call({ method: 'GET', path })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    below.close()
  })
})
