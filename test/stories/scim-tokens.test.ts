import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { application } from '#testing/stories/story-documents.ts'

const configuration = `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: write }
spec: { tasks: [{ taskType: provision, target: people, sync: true }] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: token }
spec: { className: auth.ScimToken, uri: /auth/token }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: token }
spec: { level: 20, root: o=Tremolo, authMechs: [{ name: token, required: required, params: {} }] }
---
${application('scim', [
  {
    hosts: ['*'],
    uri: '/scim',
    authChain: 'token',
    azRules: [{ scope: 'dn', constraint: 'uid=okta,ou=tokens,o=Tremolo' }],
    filterChain: [
      { className: 'filters.ScimGateway', params: { mapping: 'scim', lookupTarget: 'people', workflowName: 'write' } },
    ],
  },
])}`

test('a tenant that is added while the gateway runs has its own address, users and tokens', async () => {
  const config = temporaryFolder()
  writeFileSync(join(config, 'gateway.yaml'), configuration)
  // Clients call this machine here, and not the host of the files.
  const environment = { ACME_HOST: '127.0.0.1', UMBRELLA_HOST: '127.0.0.1' }
  const gateway = await startGatewayProcess({ config, environment })
  onTestFinished(async () => void (await gateway.stop()))
  const run = async (...args: string[]) => (await promisify(execFile)(gatehouse, ['scim', ...args])).stdout.trim()
  const add = async (tenant: string): Promise<string> => {
    const url = 'https://idm.example.com'
    await run('init', '--client', 'generic', '--tenant', tenant, '--url', url, '--out', config)
    return await run('token', 'create', '--client', tenant, '--data', gateway.dataFolder)
  }
  const call = async (tenant: string, token: string, body?: object) => {
    const response = await fetch(`${gateway.url}/tenants/${tenant}/scim/Users`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, text }
  }
  const acme = await add('acme')
  await until(async () => (await call('acme', acme)).status === 200, 60_000)
  const umbrella = await add('umbrella')
  await until(async () => (await call('umbrella', umbrella)).status === 200, 60_000)
  const created = await call('acme', acme, { userName: 'ann' })
  expect(created.status, created.text).toBe(201)
  expect(JSON.parse(created.text).meta.location).toMatch(/\/tenants\/acme\/scim\/Users\//)
  expect((await call('umbrella', umbrella)).text).not.toContain('ann')
  expect((await call('umbrella', umbrella, { userName: 'ann' })).status).toBe(201)
  // The token of a tenant is none of another one.
  expect([(await call('umbrella', acme)).status, (await call('acme', umbrella)).status]).toEqual([401, 401])
})

/** The bound of a revocation, and room for a slow machine to send the first request after it. */
const boundMillis = 5_000

describe.skipIf(postgresUrl() === '')('tokens of SCIM clients, in two gateways', () => {
  test('are created, used, rotated and revoked while both run', async () => {
    const config = temporaryFolder()
    writeFileSync(join(config, 'gateway.yaml'), configuration)
    const database = await freshSchema()
    // One folder, since its keys seal the audit.
    const data = temporaryFolder()
    const start = async () => {
      const gateway = await startGatewayProcess({ config, dataFolder: data, args: ['--database', database] })
      onTestFinished(async () => void (await gateway.stop()))
      return gateway.url
    }
    const urls = [await start(), await start()]
    const place = ['--data', data, '--database', database]
    const run = async (...args: string[]): Promise<string> =>
      (await promisify(execFile)(gatehouse, ['scim', 'token', ...args, ...place])).stdout.trim()
    /** The statuses of both gateways. */
    const statuses = (token: string) =>
      Promise.all(
        urls.map(async (url) => {
          const response = await fetch(`${url}/scim/Users`, { headers: { authorization: `Bearer ${token}` } })
          await response.arrayBuffer()
          return response.status
        }),
      )
    const first = await run('create', '--client', 'okta')
    const other = await run('create', '--client', 'entra')
    expect(await statuses(first)).toEqual([200, 200])
    // Another client's token is known, and the rule of the URL refuses it.
    expect(await statuses(other)).toEqual([403, 403])
    const second = await run('rotate', '--client', 'okta', '--overlap', '1h')
    expect([await statuses(first), await statuses(second)]).toEqual([
      [200, 200],
      [200, 200],
    ])
    await until(async () => /okta default valid, last used/.test(await run('list', '--client', 'okta')), 30_000)

    let isRevoking = true
    const seen = new Set<number>()
    const load = (async () => {
      while (isRevoking) for (const status of await statuses(second)) seen.add(status)
    })()
    await run('revoke', '--client', 'okta')
    const revoked = performance.now()
    while (performance.now() - revoked < boundMillis) await statuses(first)
    isRevoking = false
    await load
    expect([...seen].filter((status) => status !== 200 && status !== 401)).toEqual([])
    expect([await statuses(first), await statuses(second)]).toEqual([
      [401, 401],
      [401, 401],
    ])
  })
})
