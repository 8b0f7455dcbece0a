import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { fetchJson, fetchJsonTrusting } from '#protocols/jwt/fetch-json.ts'
import { FakeIssuer } from '#testing/fake-issuer.ts'
import { testServerCertificate, testServerKey } from '#testing/test-certificates.ts'

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
  await expect(fetchJson(new URL('/long', server.url), limits)).rejects.toThrow(/longer than 1000 bytes/)
})

test('only servers of the given authorities are believed', async () => {
  const server = createTlsServer({ key: testServerKey, cert: testServerCertificate }, (_request, response) =>
    response.end('{"a":1}'),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const patient = { bytes: 100, millis: 20_000 }
  expect(await fetchJsonTrusting(testServerCertificate)(url, patient)).toEqual({ a: 1 })
  await expect(fetchJson(url, patient)).rejects.toThrow(/certificate/)
})
