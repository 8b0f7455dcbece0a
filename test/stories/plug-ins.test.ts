import { afterEach, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'

let gateway: GatewayProcess | undefined

afterEach(async () => {
  await gateway?.stop()
})

test('a plug-in filter answers its own requests and passes on the rest', async () => {
  gateway = await startGatewayProcess({ config: 'examples/plugin-filter' })
  const address = `${gateway.url}/plugin-filter`
  const greeted = await fetch(`${address}?name=${encodeURIComponent('"A\\d\u0000a" 🙂')}`)
  expect(greeted.status).toBe(200)
  expect(greeted.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(await greeted.json()).toEqual({ message: 'Welcome, "A\\d\u0000a" 🙂!' })
  const refused = await fetch(address, { method: 'PUT', body: 'x' })
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET'])
  expect((await fetch(`${address}/other`)).status).toBe(404)
  expect((await fetch(address, { method: 'POST', body: 'x'.repeat(70_000) })).status).toBe(413)
})

test('a plug-in mechanism accepts only the users it knows', async () => {
  gateway = await startGatewayProcess({ config: 'examples/plugin-mechanism' })
  const address = `${gateway.url}/plugin-mechanism`
  const known = await fetch(address, { headers: { 'x-api-key': 'change me' } })
  expect(known.status).toBe(200)
  expect(await known.json()).toEqual({ dn: 'uid=demo,ou=clients,o=Tremolo' })
  for (const headers of [
    {},
    { 'x-api-key': '' },
    { 'x-api-key': 'change me, change me' },
    { 'x-api-key': 'Change me' },
  ]) {
    const unknown = await fetch(address, { headers })
    expect([unknown.status, unknown.headers.get('www-authenticate')]).toEqual([401, 'ApiKey'])
  }
  expect(gateway.output()).not.toContain('change me')
})
