import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway-process.ts'

const run = promisify(execFile)
let gateway: GatewayProcess

beforeAll(async () => {
  gateway = await startGatewayProcess({ config: 'examples/quickstart' })
})
afterAll(() => gateway.stop())

/** The lines of the welcome text that are meant to be pasted, in their order. */
const printedLines = (): string[] =>
  [...gateway.output().matchAll(/^ {2}((?:TOKEN=|curl |bin\/).*)$/gm)].map(([, line = '']) => line)

test('the printed lines work when pasted one after the other', async () => {
  const lines = printedLines()
  expect(lines).toHaveLength(7)
  const script = lines.map((line) => `${line}\necho "<<< $?"`).join('\n')
  const { stdout } = await run('sh', ['-c', script])
  const answers = stdout.split(/<<< 0\n/)
  expect(JSON.parse(answers[1] ?? '')).toMatchObject({
    totalResults: 1,
    Resources: [{ userName: 'ada', name: { givenName: 'Ada', familyName: 'Lovelace' }, active: true }],
  })
  expect(JSON.parse(answers[2] ?? '')).toMatchObject({ userName: 'mary', displayName: 'Mary Jackson' })
  expect(JSON.parse(answers[3] ?? '')).toMatchObject({ displayName: 'sales' })
  expect(JSON.parse(answers[4] ?? '')).toMatchObject({ userName: 'mary', groups: [{ value: 'sales' }] })
  expect(answers[5]).toBe('204\n')
  expect(answers[6]).toContain('decision     allowed')
})

test('it is ready in time, answers health and metrics, and drains on SIGTERM', async () => {
  const ready = await fetch(`${gateway.metricsUrl}/ready`)
  expect([ready.status, await ready.text()]).toEqual([200, 'ready\n'])
  const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  expect(metrics).toMatch(/gatehouse_http_requests_total\{application="scim-crm",method="POST",status="201"\} 1/)
  expect(metrics).toContain('gatehouse_configuration_current 1')
  expect((await fetch(`${gateway.url}/metrics`)).status).toBe(404)
  expect(await gateway.stop()).toBe(0)
})
