import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { demoPasswords } from '#testing/stories/portal-story.ts'

let dataFolder: string
beforeAll(() => {
  dataFolder = mkdtempSync(join(tmpdir(), 'gatehouse-story-'))
  chmodSync(dataFolder, 0o777)
})
afterAll(() => rmSync(dataFolder, { recursive: true, force: true }))

const start = (args: readonly string[] = [], port?: number): Promise<GatewayProcess> =>
  startGatewayProcess({ config: 'examples/quickstart', dataFolder, args, ...(port === undefined ? {} : { port }) })

/** The status of the login form's answer: 303 after a login. */
async function logIn({ url }: GatewayProcess, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const browser = new PlainBrowser(url)
  const page = await browser.get((await browser.get('/main/user')).location)
  return (await browser.post(page.action, { user: 'ada', pwd: demoPasswords.ada }, headers)).status
}

test('the data folder is closed, and the demo logins work on the machine itself, not through a proxy', async () => {
  const gateway = await start()
  try {
    expect(statSync(dataFolder).mode & 0o777).toBe(0o700)
    expect(await logIn(gateway)).toBe(303)
    expect(await logIn(gateway, { 'x-forwarded-for': '192.0.2.7' })).toBe(401)
  } finally {
    await gateway.stop()
  }
  expect(gateway.output()).toContain(`${dataFolder} (0777)`)
  expect(gateway.output()).toContain('login rejected: demo passwords work only on this machine')
})

test('on a listener for all interfaces, logins that are already in the database are rejected', async () => {
  const port = await freePort()
  const gateway = await start(['--listen', `0.0.0.0:${port}`], port)
  try {
    expect(await logIn(gateway)).toBe(401)
  } finally {
    await gateway.stop()
  }
  expect(gateway.output()).toContain('demo passwords are off')
})
