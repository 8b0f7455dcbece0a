import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'

let folder: string
let gateway: GatewayProcess

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
  writeFileSync(
    join(folder, 'targets.yaml'),
    `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: wrong }
spec: { className: '#[MYPW]', secretParams: [{ name: a, secretName: 'x#[MYPW]', secretKey: k }] }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: away }
spec:
  className: targets.Ldap
  params: { url: '#[PLACE]', adminDN: 'cn=admin,o=test', searchBase: 'o=test', objectClass: person, userIDAttribute: uid, dnPattern: 'uid=\${uid},o=test' }
  secretParams: [{ name: adminPasswd, secretName: away, secretKey: password }]
`,
  )
  const environment = {
    MYPW: 'S3cr3tV4lue-from-env',
    PLACE: 'ldaps://s3cr3t-host.invalid:636',
    AWAY_PASSWORD: 's3cr3t-password',
  }
  gateway = await startGatewayProcess({ config: folder, environment })
}, 120_000)
afterAll(async () => {
  await gateway?.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('log and health have the names of variables instead of values', async () => {
  const health = await (await fetch(`${gateway.metricsUrl}/health`)).text()
  expect(JSON.parse(health)).toMatchObject({
    configuration: { setAside: 1, objects: [{ reason: expect.stringContaining('"#[MYPW]"') }] },
    targets: [{ health: 'down', problem: expect.stringContaining('#[PLACE]') }],
  })
  // The log is written in batches.
  await until(async () => gateway.output().includes('#[MYPW]'), 40_000)
  for (const text of [health, gateway.output()]) expect(text).not.toMatch(/s3cr3t/i)
})
