import { execFile } from 'node:child_process'
import process from 'node:process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApprovalList } from '#features/portal/contract/main-requests.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'

const run = promisify(execFile)
let gateway: GatewayProcess

beforeAll(async () => {
  gateway = await startGatewayProcess({ config: 'examples/quickstart' })
})
afterAll(() => gateway.stop())

const pasteable = /^ {2}((?:[A-Z_]+=|curl |\S*gatehouse ).*)$/gm
const linesOf = (text: string): string[] => [...text.matchAll(pasteable)].map(([, line = '']) => line)

/** The lines to paste that the printed command prints, in order. */
async function printedLines(): Promise<string[]> {
  const [command = '', ...more] = linesOf(gateway.output())
  expect(more).toEqual([])
  return linesOf((await run('sh', ['-c', command])).stdout)
}

/** The printed logins and passwords. */
const printedLogins = (): [string, string][] =>
  [...gateway.output().matchAll(/^ {2}([a-z]+) +(\w+-\d{4})\b/gm)].map(([, login = '', password = '']) => [
    login,
    password,
  ])

const part = (answers: readonly string[], at: number): unknown => JSON.parse(answers[at] ?? '')

test('the address of the portal is printed first', () => {
  expect(gateway.output()).toMatch(new RegExp(`^(?:\\{.*\\n)*Open the portal: ${gateway.url}/portal\\n`))
})

test('the printed lines work when pasted one after the other', async () => {
  const lines = await printedLines()
  expect(lines).toHaveLength(19)
  const script = lines.map((line) => `${line}\necho "<<< $?"`).join('\n')
  const { stdout } = await run('sh', ['-c', script])
  const answers = stdout.split(/<<< 0\n/)
  expect(answers).toHaveLength(20)

  expect(part(answers, 2)).toMatchObject({ uid: 'ada', groups: ['engineering', 'everyone'] })
  expect(part(answers, 3)).toMatchObject([
    { name: 'wiki', url: 'https://wiki.example.com/' },
    { name: 'calendar' },
    { name: 'mail' },
  ])
  expect(part(answers, 4)).toEqual({ 'first-request': 'success' })
  expect(part(answers, 6)).toMatchObject({ status: 'completed', workflowId: expect.any(String) })
  expect(part(answers, 7)).toEqual({ addNewUsers: false, workflowId: expect.any(String) })
  expect(part(answers, 10)).toMatchObject({ uid: 'grace' })
  expect(part(answers, 11)).toMatchObject({ approvals: expect.any(Array) })

  expect(part(answers, 13)).toMatchObject({
    totalResults: 1,
    Resources: [{ userName: 'ada', name: { givenName: 'Ada', familyName: 'Lovelace' }, active: true }],
  })
  expect(part(answers, 14)).toMatchObject({ userName: 'mary', displayName: 'Mary Jackson' })
  expect(answers[15]).toBe('204\n')
  expect(part(answers, 16)).toMatchObject({ userName: 'mary', groups: [{ value: 'group:sales' }] })
  expect(answers[17]).toBe('204\n')
  expect(answers[18]).toContain('decision     allowed')
})

test('the doctor finds no problem while the gateway runs', async () => {
  const [, gatehouse = ''] = /^ {2}(\S*gatehouse) examples /m.exec(gateway.output()) ?? []
  const args = ['doctor', '--config', 'examples/quickstart', '--data', gateway.dataFolder, '--timeout', '60']
  const { stdout } = await run(gatehouse, args, { env: { ...process.env, GATEHOUSE_URL: gateway.url } })
  for (const probe of [
    /database .*: schema /,
    /issuer .*\/dev-issuer: discovery/,
    /target crm: targets\.Plugin answered/,
  ]) {
    expect(stdout).toMatch(new RegExp(`^OK {6}${probe.source}`, 'm'))
  }
  expect(stdout).not.toContain('PROBLEM')
})

test('the address without a path leads to the portal, and unknown paths lead nowhere', async () => {
  const start = await fetch(`${gateway.url}/`, { redirect: 'manual' })
  expect([start.status, start.headers.get('location')]).toEqual([302, '/portal'])
  expect((await fetch(`${gateway.url}/nothing`, { redirect: 'manual' })).status).toBe(404)
})

test('each printed login works, and the manager decides the requests', async () => {
  const logins = printedLogins()
  expect(logins.map(([login]) => login)).toEqual(['ada', 'grace', 'alan'])
  const browsers = new Map<string, PlainBrowser>()
  for (const [login, password] of logins) {
    const browser = new PlainBrowser(gateway.url)
    expect((await browser.logIn('/main/user', login, password)).location).toBe('/main/user')
    browsers.set(login, browser)
  }
  const read = async (login: string, path: string) => JSON.parse((await browsers.get(login)?.get(path))?.body ?? '')
  expect((await read('alan', '/main/config')).administrator).toBe(true)
  expect(await read('alan', '/main/urls')).toHaveLength(4)
  expect((await read('ada', '/sessioncheck')).minsLeft).toBeGreaterThan(10)

  let open: ApprovalList = { approvals: [] }
  await until(async () => {
    open = await read('grace', '/main/approvals')
    return open.approvals.length === 2
  }, 20_000)
  expect(open.approvals.map(({ user }) => user).sort()).toEqual(['ada', 'joan'])
  expect(open.approvals.map(({ label }) => label).sort()).toEqual([
    'Access to the vault for Ada Lovelace',
    'Registration of Joan Clarke',
  ])
  const cookie = [...(browsers.get('grace')?.jar ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')
  for (const { approval } of open.approvals) {
    const decided = await fetch(`${gateway.url}/main/approvals/${approval}`, {
      method: 'PUT',
      headers: { cookie, 'x-requested-with': 'test', 'content-type': 'application/json' },
      body: JSON.stringify({ approved: true, reason: 'fine' }),
    })
    expect(decided.status).toBe(200)
  }
  await until(async () => (await read('ada', '/main/user')).groups.includes('vault'), 20_000)
  const report = await read('ada', '/main/reports/My%20requests')
  expect(report.grouping[0].data).toContainEqual(expect.objectContaining({ Workflow: 'vault-access' }))
  const search = async () => (await read('grace', '/main/search?q=joan&kind=person')).people
  await until(async () => (await search()).length === 1, 20_000)
})

test('it is ready in time, answers health and metrics, and drains on SIGTERM', async () => {
  const ready = await fetch(`${gateway.metricsUrl}/ready`)
  expect([ready.status, await ready.text()]).toEqual([200, 'ready\n'])
  const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  expect(metrics).toMatch(
    /gatehouse_http_requests_total\{application="scim-crm",method="POST",status="201",outcome="ok"\} 1/,
  )
  expect(metrics).toContain('gatehouse_configuration_current 1')
  expect((await fetch(`${gateway.url}/metrics`)).status).toBe(404)
  expect(await gateway.stop()).toBe(0)
})
