import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ExpiredList, KindNotServed } from '#protocols/kubernetes/api-failure.ts'
import { type ObjectChange, ObjectClient } from '#protocols/kubernetes/object-client.ts'
import { FakeKubernetesApi } from '#testing/kubernetes/fake-kubernetes-api.ts'

const things = { group: 'g', version: 'v1', plural: 'things', namespace: 'ns' }
const thing = (name: string, resourceVersion: string) => ({
  metadata: { name, uid: 'u', resourceVersion },
  spec: 'ü'.repeat(50),
})

let api: FakeKubernetesApi
let client: ObjectClient
let asked = ''

beforeEach(async () => {
  api = await FakeKubernetesApi.start()
  client = await ObjectClient.open(
    { kind: 'address', url: new URL(api.url), token: 'very-secret' },
    { who: 'namespace ns', timeoutMillis: 2_000 },
  )
})
afterEach(async () => {
  client.close()
  await api.close()
})

function answer(status: number, play: (response: ServerResponse) => void): void {
  api.override = (request, response) => {
    asked = request.url ?? ''
    response.writeHead(status, { 'content-type': 'application/json' })
    play(response)
  }
}

async function changes(signal = AbortSignal.timeout(5_000)): Promise<ObjectChange[]> {
  const found: ObjectChange[] = []
  for await (const change of client.watch(things, '5', { seconds: 60, signal, name: 'a' })) found.push(change)
  return found
}

test('changes arrive as they are sent, however the bytes are split', async () => {
  const events = [
    { type: 'ADDED', object: thing('a', '6') },
    { type: 'BOOKMARK', object: { metadata: { resourceVersion: '8' } } },
    { type: 'DELETED', object: thing('a', '9') },
  ]
  const bytes = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
  answer(200, (response) => {
    for (let start = 0; start < bytes.length; start += 7) response.write(bytes.subarray(start, start + 7))
    response.end()
  })
  expect(await changes()).toMatchObject([
    { kind: 'stored', object: { metadata: { name: 'a', resourceVersion: '6' }, content: { spec: 'ü'.repeat(50) } } },
    { kind: 'moment', version: '8' },
    { kind: 'removed', object: { metadata: { resourceVersion: '9' } } },
  ])
  const { searchParams } = new URL(asked, api.url)
  expect(Object.fromEntries(searchParams)).toEqual({
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: '5',
    timeoutSeconds: '60',
    fieldSelector: 'metadata.name=a',
  })
})

test('an expired revision is distinguished, as an event and as a response', async () => {
  const gone = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' }
  answer(200, (response) => response.end(`${JSON.stringify({ type: 'ERROR', object: gone })}\n`))
  await expect(changes()).rejects.toBeInstanceOf(ExpiredList)
  answer(410, (response) => response.end(JSON.stringify(gone)))
  await expect(changes()).rejects.toBeInstanceOf(ExpiredList)
})

test('a kind that is not served is distinguished', async () => {
  answer(404, (response) => response.end('404 page not found'))
  await expect(changes()).rejects.toBeInstanceOf(KindNotServed)
  await expect(client.snapshot(things, 10)).rejects.toBeInstanceOf(KindNotServed)
})

test.each<[string, (response: ServerResponse) => void]>([
  ['no JSON', (response) => response.end('{"type":\n')],
  ['no object', (response) => response.end('{"type":"ADDED","object":{}}\n')],
  ['a connection that breaks', (response) => setTimeout(() => response.destroy(), 20)],
  [
    'a line without end',
    (response) => {
      const piece = 'x'.repeat(1 << 20)
      for (let i = 0; i < 5; i++) response.write(piece)
    },
  ],
])('%s ends the watch', async (_what, play) => {
  answer(200, play)
  await expect(changes()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
})

test('the watcher can end it', async () => {
  const stopping = new AbortController()
  answer(200, (response) => response.write(`${JSON.stringify({ type: 'ADDED', object: thing('a', '6') })}\n`))
  const watching = changes(stopping.signal)
  setTimeout(() => stopping.abort(), 50)
  await expect(watching).rejects.toThrow()
})
