import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { application, peopleInDatabase, registrationUrl } from '#testing/stories/story-documents.ts'

const password = 'an uncommon tortoise'

/** A form with a password, and a page for registered users. */
const configuration = `
${peopleInDatabase}
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: join }
spec:
  tasks:
    - { taskType: provision, target: people, sync: true, setPassword: true, attributes: [uid, mail] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: login-form }
spec: { className: auth.FormLogin, uri: /auth/formLogin }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: login }
spec:
  level: 10
  authMechs: [{ name: login-form, required: required, params: { uidAttr: uid } }]
---
${application('register', [
  registrationUrl('/register', { workflowName: 'join', preSetPassword: 'true', 'uid.unique': 'true' }),
])}
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: pages }
spec:
  cookieConfig: { sessionCookieName: pages, domain: "*", timeout: 900, secure: false, cookiesEnabled: true, logoutURI: /check/logout }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /check
      authChain: login
      azRules: [{ scope: dn, constraint: "ou=people,o=Tremolo" }]
      filterChain: [{ className: filters.CheckSession, params: { applicationName: pages } }]
`

describe('a user who registers with a password logs in with it, on SQLite', () => story())
describe.skipIf(postgresUrl() === '')('a user who registers with a password logs in with it, on PostgreSQL', () =>
  story(freshSchema),
)

function story(databaseUrl?: () => Promise<string>): void {
  let gateway: GatewayProcess
  let database: string[]
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-registered-'))
  const dataFolder = join(folder, 'data')

  beforeAll(async () => {
    const config = join(folder, 'config')
    mkdirSync(config)
    writeFileSync(join(config, 'all.yaml'), configuration)
    const url = await databaseUrl?.()
    database = ['--data', dataFolder, ...(url === undefined ? [] : ['--database', url])]
    gateway = await startGatewayProcess({ config, dataFolder, args: [...database.slice(2), '--log-level', 'debug'] })
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const submit = async (attributes: Readonly<Record<string, string>>, repeated = password) => {
    const answer = await fetch(`${gateway.url}/register/submit`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ attributes, password, password2: repeated }),
    })
    return answer.status
  }

  test('the form accepts the password, the login verifies it, and nothing shows it', async () => {
    expect(await submit({ uid: 'ada', mail: 'ada@corp.test' }, 'another one')).toBe(500)
    expect(await submit({ uid: 'ada', mail: 'ada@corp.test' })).toBe(200)
    const browser = new PlainBrowser(gateway.url)
    const runs = async () => await commandOutput('workflow', 'list', ...database)
    await until(async () => /completed|incident/.test(await runs()), 60_000)
    expect(await runs()).toContain('completed')
    expect((await browser.logIn('/check', 'ada', password)).status).toBe(303)
    expect((await browser.get('/check')).status).toBe(200)
    expect((await new PlainBrowser(gateway.url).logIn('/check', 'ada', 'a wrong tortoise')).status).toBe(401)

    const audit = await commandOutput('audit', 'tail', ...database)
    expect(audit).toMatch(/password/)
    const files = readdirSync(dataFolder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    const stored = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'))
    for (const text of [audit, gateway.output(), ...stored]) expect(text.includes(password)).toBe(false)
    expect(`${audit}${gateway.output()}`).not.toContain('argon2')
  })

  test('the page after a logout leads to the only application', async () => {
    const browser = new PlainBrowser(gateway.url)
    await browser.logIn('/check', 'ada', password)
    const out = await browser.get('/check/logout')
    expect((await browser.get(out.location)).body).toContain('<a href="/check">Sign in again</a>')
  })

  test('registrations are counted', async () => {
    const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
    expect(metrics).toContain('gatehouse_registrations_total{form="register join",event="refused"} 1')
    expect(metrics).toContain('gatehouse_registrations_total{form="register join",event="started"} 1')
  })
}
