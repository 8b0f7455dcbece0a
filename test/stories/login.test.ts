import { mkdtempSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { startSlapd } from '#testing/ldap/slapd.ts'

const config = 'examples/login'
const password = 'correct horse battery'
const guess = 'a-guess-at-random'

async function addUser(login: string, ...where: string[]): Promise<void> {
  const args = ['user', 'add', login, '--config', config, '--attribute', `mail=${login}@corp.test`, ...where]
  expect(await runCommand(args, `${password}\n`)).toMatchObject({ code: 0 })
}

describe('login by a form, over the embedded directory', () => {
  let gateway: GatewayProcess
  const dataFolder = mkdtempSync(join(tmpdir(), 'gatehouse-login-data-'))
  const start = async () => {
    gateway = await startGatewayProcess({ config, dataFolder })
  }

  beforeAll(async () => {
    await addUser('ada', '--data', dataFolder)
    await Promise.all(
      ['grace', 'locked', 'parallel', 'guessed', 'victim'].map((login) => addUser(login, '--data', dataFolder)),
    )
    await start()
  }, 60_000)
  afterAll(async () => {
    await gateway.stop()
    await rm(dataFolder, { recursive: true, force: true })
  })

  test('a user reaches the page, by login or mail address, and the session lasts', async () => {
    for (const user of ['ada', 'ADA@corp.test']) {
      const browser = new PlainBrowser(gateway.url)
      const done = await browser.logIn('/hello?x=1', user, password)
      expect([done.status, done.location]).toEqual([303, '/hello?x=1'])
      const page = await browser.get(done.location)
      expect(JSON.parse(page.body)).toEqual({
        uid: 'ada',
        dn: 'uid=ada,ou=staff,o=Tremolo',
        mail: 'ada@corp.test',
      })
    }
  })

  test('the page is complete, and every answer is closed to other sites', async () => {
    const browser = new PlainBrowser(gateway.url)
    const page = await browser.get((await browser.get('/hello')).location)
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect(page.headers.get('content-security-policy')).not.toMatch(/unsafe/)
    const api = await fetch(`${gateway.url}/hello`, { headers: { accept: 'application/json' } })
    expect(api.status).toBe(401)
    expect(api.headers.get('content-type')).toMatch(/^application\/json/)
    for (const headers of [page.headers, api.headers]) {
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('same-origin')
      expect(headers.get('strict-transport-security')).toBeNull()
    }
  })

  test('a higher level requires another login, the session stays the same, and its cookie does not', async () => {
    const browser = new PlainBrowser(gateway.url)
    await browser.logIn('/hello', 'ada', password)
    const before = browser.jar.get('hello')
    const step = await browser.get('/hello/careful')
    expect(step.location).toMatch(/^\/auth\/formLogin\?login=/)
    const done = await browser.logIn('/hello/careful', 'ada', password)
    expect(done.location).toBe('/hello/careful')
    expect(browser.jar.get('hello')).not.toBe(before)
    expect((await browser.get('/hello/careful')).status).toBe(200)
    expect((await browser.get('/hello')).status).toBe(200)
  })

  test('logging out ends the session for every copy of its cookie; the check returns the minutes', async () => {
    const browser = new PlainBrowser(gateway.url)
    await browser.logIn('/hello', 'grace', password)
    const copy = browser.at(gateway.url)
    const check = await browser.get('/sessioncheck')
    expect(JSON.parse(check.body)).toEqual({ minsLeft: 14 })
    const asked = await browser.get('/hello/logout', { 'sec-fetch-site': 'cross-site' })
    expect([asked.status, asked.body]).toEqual([200, expect.stringContaining('<form action="/hello/logout">')])
    expect((await browser.get('/hello')).status).toBe(200)
    const out = await browser.get('/hello/logout', { 'sec-fetch-site': 'same-origin' })
    expect([out.status, out.location]).toEqual([303, '/auth/signed-out'])
    expect((await browser.get(out.location)).body).toContain('You are signed out')
    for (const one of [browser, copy]) {
      expect((await one.get('/sessioncheck')).status).toBe(401)
      expect((await one.get('/hello')).status).toBe(303)
    }
  })

  test('a login in progress survives a restart', async () => {
    const browser = new PlainBrowser(gateway.url)
    const page = await browser.get((await browser.get('/hello/deep')).location)
    await gateway.stop()
    await start()
    const after = browser.at(gateway.url)
    const done = await after.post(page.action, { user: 'ada', pwd: password })
    expect([done.status, done.location]).toEqual([303, '/hello/deep'])
    expect((await after.get('/hello')).status).toBe(200)
  })

  test('five wrong passwords lock an account, known or not; others continue', async () => {
    for (const user of ['locked', 'nobody-at-all']) {
      const browser = new PlainBrowser(gateway.url)
      const answers: (number | string)[] = []
      for (let i = 0; i < 6; i++) {
        const answer = await browser.logIn('/hello', user, guess)
        answers.push(answer.status)
      }
      expect(answers).toEqual([401, 401, 401, 401, 401, 429])
      const right = await browser.logIn('/hello', user, password)
      expect(right.status).toBe(429)
      expect(Number(right.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(right.body).toMatch(/role="alert">Too many attempts failed/)
    }
    expect((await new PlainBrowser(gateway.url).logIn('/hello', 'ada', password)).status).toBe(303)
  })

  test('another name of an account allows no further guesses, and reveals nothing', async () => {
    for (let i = 0; i < 5; i++) {
      expect((await new PlainBrowser(gateway.url).logIn('/hello', 'guessed', guess)).status).toBe(401)
    }
    const alias = new PlainBrowser(gateway.url)
    const right = await alias.logIn('/hello', 'guessed@corp.test', password)
    expect([right.status, right.headers.get('retry-after')]).toEqual([401, null])
    expect((await alias.get('/hello')).status).toBe(303)
    // An unknown name gets the same answer.
    const nobody = await new PlainBrowser(gateway.url).logIn('/hello', 'nobody-else@corp.test', password)
    const alert = (body: string) => /role="alert">([^<]*)/.exec(body)?.[1]
    expect([right.status, alert(right.body)]).toEqual([nobody.status, alert(nobody.body)])
  })

  test('strangers lock an account for strangers, and not for the browser that its owner uses', async () => {
    const owner = new PlainBrowser(gateway.url)
    expect((await owner.logIn('/hello', 'victim', password)).status).toBe(303)
    await owner.get('/hello/logout')
    const stranger = new PlainBrowser(gateway.url)
    const tried = []
    for (let i = 0; i < 6; i++) tried.push((await stranger.logIn('/hello', 'victim', guess)).status)
    expect(tried).toEqual([401, 401, 401, 401, 401, 429])
    expect((await new PlainBrowser(gateway.url).logIn('/hello', 'victim', password)).status).toBe(429)

    expect((await owner.logIn('/hello', 'victim', password)).status).toBe(303)
    expect((await owner.get('/hello')).status).toBe(200)
    expect((await stranger.logIn('/hello', 'victim', password)).status).toBe(429)

    // The browser's own attempts are bounded, too.
    await owner.get('/hello/logout')
    const own = []
    for (let i = 0; i < 6; i++) own.push((await owner.logIn('/hello', 'victim', guess)).status)
    expect(own).toEqual([401, 401, 401, 401, 401, 429])
  })

  test('concurrent wrong passwords are counted one by one', async () => {
    const browser = new PlainBrowser(gateway.url)
    const pages = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const other = new PlainBrowser(gateway.url)
        return { other, page: await other.get((await other.get('/hello')).location) }
      }),
    )
    const tried = await Promise.all(
      pages.map(({ other, page }) => other.post(page.action, { user: 'parallel', pwd: guess })),
    )
    expect(tried.filter(({ status }) => status === 401)).toHaveLength(5)
    expect(tried.filter(({ status }) => status === 429)).toHaveLength(7)
    expect((await browser.logIn('/hello', 'parallel', password)).status).toBe(429)
  })

  test('fixation, replay, foreign forms and open redirects neither log in nor redirect anyone', async () => {
    const attacker = new PlainBrowser(gateway.url)
    const page = await attacker.get((await attacker.get('/hello')).location)
    const victim = new PlainBrowser(gateway.url)
    expect((await victim.post(page.action, { user: 'ada', pwd: password })).status).toBe(400)
    expect(victim.jar.has('hello')).toBe(false)

    const browser = new PlainBrowser(gateway.url)
    browser.jar.set('hello', 'a'.repeat(43))
    const own = await browser.get((await browser.get('/hello?target=https://evil.test')).location)
    const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' }
    expect((await browser.post(own.action, { user: 'ada', pwd: password }, foreign)).status).toBe(403)
    const done = await browser.post(`${own.action}&target=https://evil.test`, {
      user: 'ada',
      pwd: password,
      target: 'https://evil.test',
    })
    expect([done.status, done.location]).toEqual([303, '/hello?target=https%3A%2F%2Fevil.test'])
    expect(browser.jar.get('hello')).not.toBe('a'.repeat(43))
    expect((await browser.post(own.action, { user: 'ada', pwd: password })).status).toBe(400)
    const cookie = browser.jar.get('hello') ?? ''
    browser.jar.set('hello', `${cookie.slice(0, -1)}${cookie.endsWith('A') ? 'B' : 'A'}`)
    expect((await browser.get('/hello')).status).toBe(303)
  })

  test('logins are in the audit and in the metrics, passwords nowhere', async () => {
    const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
    expect(metrics).toMatch(/gatehouse_logins_total\{chain="login",outcome="signed-in"\} [1-9]/)
    expect(metrics).toMatch(/gatehouse_logins_total\{chain="login",outcome="locked"\} [1-9]/)
    expect(gateway.output()).toContain('login refused')
    for (const text of [metrics, gateway.output()]) {
      expect(text).not.toContain(password)
      expect(text).not.toContain(guess)
      expect(text).not.toContain('nobody-at-all')
    }
  })
})

describe.skipIf(postgresUrl() === '')('two replicas with one PostgreSQL', () => {
  test('a login that starts on one continues on the other, and its session is valid on both', async () => {
    const database = await freshSchema()
    await addUser('ada', '--database', database)
    const environment = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') }
    const args = ['--database', database]
    const [a, b] = await Promise.all([
      startGatewayProcess({ config, args, environment }),
      startGatewayProcess({ config, args, environment }),
    ])
    onTestFinished(async () => {
      await Promise.all([a.stop(), b.stop()])
    })
    const onA = new PlainBrowser(a.url)
    const page = await onA.get((await onA.get('/hello')).location)
    const onB = onA.at(b.url)
    const done = await onB.post(page.action, { user: 'ada', pwd: password })
    expect([done.status, done.location]).toEqual([303, '/hello'])
    const again = onB.at(a.url)
    expect((await again.get('/hello')).status).toBe(200)
    expect((await onA.post(page.action, { user: 'ada', pwd: password })).status).toBe(400)
    await again.get('/hello/logout')
    expect((await onB.get('/hello')).status).toBe(303)
    const tried = []
    for (let i = 0; i < 6; i++) {
      const one = new PlainBrowser(i % 2 === 0 ? a.url : b.url)
      tried.push((await one.logIn('/hello', 'ada', guess)).status)
    }
    expect(tried).toEqual([401, 401, 401, 401, 401, 429])
  })
})

test.skipIf(inject('slapd') === '')('login by a form, over OpenLDAP', async () => {
  const slapd = await startSlapd({
    seed: `dn: uid=ada,ou=people,dc=example,dc=test
objectClass: inetOrgPerson
uid: ada
cn: Ada
sn: Lovelace
mail: ada@corp.test
userPassword: ${password}

`,
  })
  onTestFinished(() => slapd.stop())
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-login-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await cp(config, folder, { recursive: true })
  const file = join(folder, 'authentication.yaml')
  const text = await readFile(file, 'utf8')
  const ldap = `className: directory.Ldap
  params:
    - { name: url, value: "${slapd.url}" }
    - { name: adminDN, value: "${slapd.adminDn}" }
    - { name: adminPasswd, value: "${slapd.adminPassword}" }
    - { name: searchBase, value: "${slapd.baseDn}" }`
  expect(text).toContain('className: directory.Database')
  await writeFile(file, text.replace('className: directory.Database', ldap))
  const gateway = await startGatewayProcess({ config: folder })
  onTestFinished(async () => void (await gateway.stop()))
  const browser = new PlainBrowser(gateway.url)
  expect((await browser.logIn('/hello', 'ada', password)).status).toBe(303)
  expect(JSON.parse((await browser.get('/hello')).body)).toMatchObject({
    uid: 'ada',
    dn: 'uid=ada,ou=people,ou=staff,o=Tremolo',
  })
  for (const user of ['*', 'ada)(uid=*', 'nobody']) {
    expect((await new PlainBrowser(gateway.url).logIn('/hello', user, password)).status).toBe(401)
  }
  expect((await new PlainBrowser(gateway.url).logIn('/hello', 'ada', 'wrong')).status).toBe(401)
  await slapd.kill()
  const down = await new PlainBrowser(gateway.url).logIn('/hello', 'ada', password)
  expect([down.status, down.headers.get('content-type')]).toEqual([503, 'text/html; charset=utf-8'])
  await slapd.restart()
  const isUp = async () => (await new PlainBrowser(gateway.url).logIn('/hello', 'ada', password)).status === 303
  await until(isUp, 30_000)
})
