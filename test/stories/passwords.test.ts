import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectDescribed } from '#testing/gateway/api-contract.ts'
import { commandOutput, runCommand } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { type MailServer, mailServer } from '#testing/servers/mail-server.ts'
import { addPerson } from '#testing/stories/add-person.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'

const password = 'correct horse battery'
const another = 'another horse battery'
const json = { 'content-type': 'application/json' }

/** As a workflow of OpenUnison has it. */
const mailLink = `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata:
  name: mail-link
spec:
  label: A link
  description: Mails a link to set a password.
  inList: true
  orgId: finance
  tasks: |-
    - taskType: customTask
      className: com.tremolosecurity.provisioning.customTasks.SetPassword
      params:
        mechName: PasswordReset
`

/** The portal's example, with the embedded directory and a mail server. */
describe('passwords that users set themselves', () => {
  let gateway: GatewayProcess
  let mails: MailServer
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-passwords-'))
  const config = join(folder, 'config')
  const dataFolder = join(folder, 'data')
  const people = ['rosa', 'vera', 'nora', 'dora', 'gone', 'twin1', 'twin2', 'lena', 'olga', 'newbie']

  beforeAll(async () => {
    cpSync('examples/portal', config, { recursive: true })
    const account = join(config, 'account.yaml')
    const url = '            publicURL: "#[GATEHOUSE_URL]/password"\n'
    const text = readFileSync(account, 'utf8')
    if (!text.includes(url)) throw new Error('the example has changed')
    // The story requests more links than one address may in a minute.
    writeFileSync(account, text.replace(url, `${url}            requestsPerMinute: "0"\n`))
    writeFileSync(join(config, 'mail-link.yaml'), mailLink)
    mails = await mailServer()
    for (const login of people) {
      const mail = login.startsWith('twin') ? 'twin@corp.test' : `${login}@corp.test`
      const off = login === 'gone' ? ['--attribute', 'active=false'] : []
      const given = ['--attribute', `uid=${login}`, '--attribute', `mail=${mail}`, '--group', 'newsletter', ...off]
      await addPerson(config, dataFolder, login, password, given)
    }
    await addPerson(config, dataFolder, 'mute', password, ['--attribute', 'uid=mute'])
    gateway = await startGatewayProcess({ config, dataFolder, environment: { MAIL_PORT: String(mails.port) } })
  }, 180_000)
  afterAll(async () => {
    await gateway?.stop()
    await mails?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function signedIn(login: string, secret = password): Promise<PortalPerson> {
    const browser = new PlainBrowser(gateway.url)
    const { status } = await browser.logIn('/portal/main/user', login, secret)
    if (status !== 303) throw new Error(`${login} did not get in: ${status}`)
    return new PortalPerson(gateway.url, browser)
  }
  const canSignIn = async (login: string, secret: string): Promise<boolean> =>
    (await new PlainBrowser(gateway.url).logIn('/portal/main/user', login, secret)).status === 303
  const statusOf = async (person: PortalPerson): Promise<number> => (await person.get('/api/account')).status
  const change = (person: PortalPerson, currentPassword: string, newPassword: string) =>
    person.send('POST', '/api/account/password', { currentPassword, newPassword })

  /** Sends, and compares the answer with the document of the API. */
  const post = async (path: string, body: unknown) => {
    const response = await fetch(`${gateway.url}${path}`, { method: 'POST', headers: json, body: JSON.stringify(body) })
    const answer = { method: 'POST', path: path.replace('/password', '/reset'), status: response.status }
    const type = response.headers.get('content-type')
    expectDescribed({ ...answer, type, text: await response.clone().text() })
    return response
  }
  const request = (user: string) => post('/password', { user })
  const set = (token: string, newPassword: string) => post('/password/set', { token, newPassword })

  const mailsTo = (login: string, subject: string) =>
    mails.mails.filter((mail) => mail.to.includes(`${login}@corp.test`) && mail.headers.get('subject')?.[0] === subject)

  /** The secret of the user's latest link, after this many have arrived. */
  async function secretOf(login: string, count = 1): Promise<string> {
    await until(async () => mailsTo(login, 'Set a new password').length >= count, 30_000)
    const text = mailsTo(login, 'Set a new password').at(-1)?.parts[0]?.body ?? ''
    const secret = /\/password\/set#([\w-]{43})\s/.exec(text)?.[1]
    if (secret === undefined) throw new Error(`no link in: ${text}`)
    return secret
  }

  function inDatabase(statement: string): void {
    const database = new DatabaseSync(join(dataFolder, 'gatehouse.db'))
    try {
      database.exec(`pragma busy_timeout = 5000; ${statement}`)
    } finally {
      database.close()
    }
  }

  async function audited(login: string): Promise<string> {
    return await commandOutput('audit', 'tail', '--data', dataFolder, '--subject', login)
  }

  test('change: by the current password; other sessions end, this one stays, and a mail confirms it', async () => {
    const [here, elsewhere] = [await signedIn('rosa'), await signedIn('rosa')]
    expect((await here.get('/api/account')).json).toMatchObject({ password: { minChars: 8, maxChars: 128 } })
    const changed = await change(here, password, another)
    expect([changed.status, changed.json]).toEqual([200, { ended: 1 }])
    expect([await statusOf(here), await statusOf(elsewhere)]).toEqual([200, 401])
    expect([await canSignIn('rosa', password), await canSignIn('rosa', another)]).toEqual([false, true])
    await until(async () => mailsTo('rosa', 'Your password was changed').length === 1, 30_000)
    expect(await audited('rosa')).toMatch(/=password, by rosa.*current password[\s\S]*reason: password changed/)
  })

  test('change: invalid input is rejected with a stable code, and nothing changes', async () => {
    const [vera, other] = [await signedIn('vera'), await signedIn('vera')]
    const codes = async (current: string, next: string) => {
      const { status, json: body } = await change(vera, current, next)
      return [status, body.code]
    }
    expect(await codes('wrong horse', another)).toEqual([403, 'WRONG_PASSWORD'])
    expect(await codes(password, 'short')).toEqual([422, 'WEAK_PASSWORD'])
    expect(await codes(password, 'vera@corp.test')).toEqual([422, 'WEAK_PASSWORD'])
    expect(await codes(password, password)).toEqual([422, 'WEAK_PASSWORD'])
    expect((await vera.send('POST', '/api/account/password', { newPassword: another })).status).toBe(400)
    expect((await vera.send('POST', '/api/account/password', '{')).status).toBe(400)
    const foreign = await vera.send('POST', '/api/account/password', {}, { origin: 'https://evil.test' })
    expect(foreign.status).toBe(403)
    expect([await statusOf(other), await canSignIn('vera', password)]).toEqual([200, true])
  })

  test('change: guesses of the current password count as failed logins', async () => {
    const olga = await signedIn('olga')
    const answers = []
    for (let i = 0; i < 8; i++) answers.push((await change(olga, `guess number ${i}`, another)).status)
    expect(answers.at(0)).toBe(403)
    expect(answers).toContain(429)
  })

  test('reset: a link sets a new password once and ends all sessions', async () => {
    const sessions = [await signedIn('nora'), await signedIn('nora')]
    expect((await request('NORA@corp.test')).status).toBe(202)
    const secret = await secretOf('nora')
    expect((await set(secret, 'short')).status).toBe(422)
    const done = await set(secret, another)
    expect([done.status, await done.text()]).toEqual([204, ''])
    expect(await Promise.all(sessions.map(statusOf))).toEqual([401, 401])
    expect([await canSignIn('nora', password), await canSignIn('nora', another)]).toEqual([false, true])
    const again = await set(secret, 'yet another battery')
    expect([again.status, ((await again.json()) as { code: string }).code]).toEqual([404, 'NOT_FOUND'])
    await until(async () => mailsTo('nora', 'Your password was changed').length === 1, 30_000)
    const audit = await audited('nora')
    expect(audit).toMatch(/token issued password reset link, by anonymous/)
    expect(audit).toMatch(/=password, by nora.*reset link/)
    expect(audit.match(/reason: password changed/g)).toHaveLength(2)
    expect(gateway.output()).not.toContain(secret)
    expect(audit).not.toContain(secret)
  })

  test('a workflow mails a link, in the name of its requester', async () => {
    const newbie = await signedIn('newbie')
    const line = { name: 'mail-link', uuid: 'cart', reason: 'new here' }
    expect((await newbie.send('PUT', '/portal/main/workflows', [line])).json).toEqual({ cart: 'success' })
    const secret = await secretOf('newbie')
    expect((await set(secret, another)).status).toBe(204)
    expect([await canSignIn('newbie', password), await canSignIn('newbie', another)]).toEqual([false, true])
    expect(await audited('newbie')).toMatch(/token issued password reset link, by newbie/)
    expect(gateway.output()).not.toContain(secret)
  })

  test('reset: the pages work without scripts, send no referrer, and show what is wrong', async () => {
    const browser = new PlainBrowser(gateway.url)
    const login = await browser.get((await browser.get('/portal')).location)
    expect(login.body).toContain('<a href="/password">Forgot your password?</a>')
    const asking = await browser.get('/password')
    expect([asking.status, asking.action]).toEqual([200, '/password'])
    const sent = await browser.post(asking.action, { user: 'dora' })
    expect([sent.status, sent.body.includes('Check your inbox')]).toEqual([202, true])
    const secret = await secretOf('dora')
    const page = await browser.get('/password/set')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const filled = (first: string, second = first) =>
      browser.post(page.action, { token: secret, password: first, repeated: second })
    const different = await filled(another, 'something else')
    expect([different.status, different.body.includes('role="alert"')]).toEqual([422, true])
    expect((await filled('dora')).status).toBe(422)
    const foreign = { token: secret, password: another, repeated: another }
    expect((await browser.post(page.action, foreign, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    const done = await filled(another)
    expect([done.status, done.body.includes('Password changed')]).toEqual([200, true])
    expect((await filled('yet another battery')).status).toBe(410)
    expect(await canSignIn('dora', another)).toBe(true)
  })

  test('reset: everyone gets the same answer, and only an active user with a mail address gets a mail', async () => {
    const before = mails.mails.length
    const answers = []
    for (const user of ['nobody at all', 'gone', 'mute', 'twin@corp.test', '*', 'lena']) {
      const answer = await request(user)
      answers.push([answer.status, await answer.text(), answer.headers.get('content-type')])
    }
    for (const answer of answers) expect(answer).toEqual([202, '', null])
    await secretOf('lena')
    const recipients = mails.mails.slice(before).flatMap(({ to }) => to)
    expect(recipients.filter((to) => !['lena@corp.test', 'dora@corp.test'].includes(to))).toEqual([])
    expect(await audited('unknown')).toMatch(/several users match/)
  })

  test('reset: a newer link replaces an older one, one of two concurrent uses wins, and links are limited', async () => {
    const old = await secretOf('lena')
    await request('lena')
    const secret = await secretOf('lena', 2)
    expect((await set(old, another)).status).toBe(404)
    const answers = await Promise.all([0, 1, 2, 3].map((i) => set(secret, `${another} ${i}`)))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 204)).toHaveLength(1)
    expect(statuses.filter((status) => status !== 204 && status !== 404 && status !== 409)).toEqual([])
    const winner = statuses.indexOf(204)
    expect(await canSignIn('lena', `${another} ${winner}`)).toBe(true)
    await request('lena')
    await secretOf('lena', 3)
    expect((await request('lena')).status).toBe(202)
    expect(await audited('lena')).toMatch(/more than 3 links in an hour/)
  })

  test('reset: an expired link, or one of a former user, sets nothing', async () => {
    await request('vera')
    const late = await secretOf('vera')
    inDatabase('update password_changes set expires = 1')
    expect((await set(late, another)).status).toBe(404)
    expect(await canSignIn('vera', password)).toBe(true)
    await request('twin1')
    await until(async () => mailsTo('twin', 'Set a new password').length === 1, 30_000)
    const text = mailsTo('twin', 'Set a new password')[0]?.parts[0]?.body ?? ''
    await commandOutput('user', 'remove', 'twin1', '--config', config, '--data', dataFolder)
    await addPerson(config, dataFolder, 'twin1', password, [
      '--attribute',
      'uid=twin1',
      '--attribute',
      'mail=t@corp.test',
    ])
    // Another user with the same login and name.
    expect((await set(/set#([\w-]{43})\s/.exec(text)?.[1] ?? '', another)).status).toBe(404)
    expect(await canSignIn('twin1', password)).toBe(true)
  })

  test('reset: the link has the configured address for every host, and `user passwd` voids it', async () => {
    await addPerson(config, dataFolder, 'ilse', password, [
      '--attribute',
      'uid=ilse',
      '--attribute',
      'mail=ilse@corp.test',
    ])
    const evil = { 'x-forwarded-host': 'evil.test', forwarded: 'host=evil.test', origin: 'https://evil.test' }
    const body = JSON.stringify({ user: 'ilse' })
    await fetch(`${gateway.url}/password`, { method: 'POST', headers: { ...json, ...evil }, body })
    const secret = await secretOf('ilse')
    const text = mailsTo('ilse', 'Set a new password').at(-1)?.parts[0]?.body ?? ''
    expect([text.includes(`${gateway.url}/password/set#`), text.includes('evil')]).toEqual([true, false])
    const passwd = ['user', 'passwd', 'ilse', '--config', config, '--data', dataFolder]
    expect((await runCommand(passwd, 'third horse battery\n')).code).toBe(0)
    expect((await set(secret, another)).status).toBe(404)
    expect(await canSignIn('ilse', 'third horse battery')).toBe(true)
  })

  test('reset: invalid input is rejected in the format of the API', async () => {
    expect((await post('/password', {})).status).toBe(400)
    expect((await post('/password/set', { token: 'x' })).status).toBe(400)
    expect((await set('x'.repeat(43), another)).status).toBe(404)
    expect((await fetch(`${gateway.url}/password/elsewhere`)).status).toBe(404)
    expect((await fetch(`${gateway.url}/password`, { method: 'PUT' })).status).toBe(405)
  })
})
