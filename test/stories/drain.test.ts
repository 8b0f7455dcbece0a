import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { slowTarget } from '#testing/stories/slow-target.ts'

/** A slow target, behind a gateway that anyone may use. */
const configuration = `
${slowTarget(1000)}---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: create }
spec: { tasks: [{ taskType: provision, target: slow, sync: true }] }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: slow }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ['*']
      uri: /slow
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: filters.ScimGateway
          params: { lookupTarget: slow, uidAttributeName: userName, workflowName: create }
`

let folder: string
let gateway: GatewayProcess

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
  writeFileSync(join(folder, 'slow.yaml'), configuration)
  gateway = await startGatewayProcess({ config: folder })
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('after SIGTERM a request in progress is finished, new ones are rejected, and readiness says so', async () => {
  const ended = once(gateway.process, 'exit')
  const slow = fetch(`${gateway.url}/slow/Users`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"userName": "ada"}',
  })
  await new Promise((resolve) => setTimeout(resolve, 200))
  gateway.process.kill('SIGTERM')
  await until(async () => (await fetch(`${gateway.metricsUrl}/ready`)).status === 503, 1500)
  await expect(fetch(`${gateway.url}/check_alive`)).rejects.toThrow()
  expect(gateway.process.exitCode).toBeNull()
  expect((await slow).status).toBe(201)
  expect(await ended).toEqual([0, null])
})
