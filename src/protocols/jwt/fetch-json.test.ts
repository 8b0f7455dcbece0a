import { afterEach, beforeEach, expect, test } from 'vitest'
import { fetchJson } from '#protocols/jwt/fetch-json.ts'
import { FakeIssuer } from '#testing/fake-issuer.ts'

let server: FakeIssuer
beforeEach(async () => {
  server = await FakeIssuer.start([])
})
afterEach(() => server.close())

const limits = { bytes: 1000, millis: 200 }

test('a server that never answers is given up', async () => {
  server.overrides.set('/hang', () => {})
  await expect(fetchJson(new URL('/hang', server.url), limits)).rejects.toThrow()
})

test('a server that never ends its answer is given up', async () => {
  server.overrides.set('/drip', (_request, response) => void response.writeHead(200).write('{'))
  await expect(fetchJson(new URL('/drip', server.url), limits)).rejects.toThrow()
})

test('an answer of the longest size is read, one byte more is not', async () => {
  const text = (size: number) => JSON.stringify('x'.repeat(size - 2))
  server.overrides.set('/fits', (_request, response) => void response.end(text(1000)))
  server.overrides.set('/long', (_request, response) => void response.end(text(1001)))
  expect(await fetchJson(new URL('/fits', server.url), limits)).toHaveLength(998)
  await expect(fetchJson(new URL('/long', server.url), limits)).rejects.toThrow(/more than 1000 bytes/)
})
