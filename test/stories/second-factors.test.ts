import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type {
  AccountFactors,
  AccountSessions,
  EnrolledFactor,
  TotpEnrolment,
} from '#features/account/contract/account.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser, type Visit } from '#testing/gateway/plain-browser.ts'
import { addPerson } from '#testing/stories/add-person.ts'

const config = 'examples/second-factors'
const password = 'correct horse battery'
const dataFolder = mkdtempSync(join(tmpdir(), 'gatehouse-factors-'))
let gateway: GatewayProcess

beforeAll(async () => {
  for (const login of ['ada', 'grace', 'mary', 'joan']) await addPerson(config, dataFolder, login, password)
  gateway = await startGatewayProcess({ config, dataFolder })
}, 60_000)
afterAll(async () => {
  await gateway.stop()
  await rm(dataFolder, { recursive: true, force: true })
})

/** The code of the present time step, or of the next one, which is already accepted and unused. */
const codeOf = (secret: string, steps = 0): string =>
  new TOTP({ secret }).generate({ timestamp: Date.now() + steps * 30_000 })

/** Up to the page of the second mechanism. */
async function afterPassword(browser: PlainBrowser, path: string, login: string): Promise<Visit> {
  const posted = await browser.logIn(path, login, password)
  expect([posted.status, posted.location]).toEqual([303, expect.stringMatching(/^\/auth\/(?:totp|passkey)\?login=/)])
  return browser.get(posted.location)
}

const keyOn = ({ body }: Visit): string => (/Key: <code>([^<]+)</.exec(body)?.[1] ?? '').replaceAll(' ', '')
const codesOn = ({ body }: Visit): string[] => [...body.matchAll(/<li><code>([^<]+)</g)].map((match) => match[1] ?? '')

async function setUp(login: string): Promise<{ browser: PlainBrowser; secret: string; used: string; codes: string[] }> {
  const browser = new PlainBrowser(gateway.url)
  const page = await afterPassword(browser, '/hello/code', login)
  const secret = keyOn(page)
  const used = codeOf(secret)
  const codes = await browser.post(page.action, { code: used })
  expect(codes.status).toBe(200)
  const done = await browser.post(codes.action, {})
  expect([done.status, done.location]).toEqual([303, '/hello/code'])
  return { browser, secret, used, codes: codesOn(codes) }
}

const api = async <T>(browser: PlainBrowser, method: string, path: string, body?: object, url = gateway.url) => {
  const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { cookie, 'content-type': 'application/json', 'x-requested-with': 'test' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as T }
}

test('an authenticator app is set up at the first login, required at the next, and no code counts twice', async () => {
  const { browser, secret, used, codes } = await setUp('ada')
  expect(JSON.parse((await browser.get('/hello/code')).body)).toEqual({ uid: 'ada', level: 20 })
  expect(codes).toHaveLength(10)

  const again = new PlainBrowser(gateway.url)
  const page = await afterPassword(again, '/hello/code?x=1', 'ada')
  expect(page.body).not.toContain(secret.slice(0, 4))
  expect((await again.post(page.action, { code: used })).status).toBe(401)
  expect((await again.get('/hello/code')).status).toBe(303)
  const code = codeOf(secret, 1)
  const done = await again.post(page.action, { code })
  expect([done.status, done.location]).toEqual([303, '/hello/code?x=1'])

  const thief = new PlainBrowser(gateway.url)
  const other = await afterPassword(thief, '/hello/code', 'ada')
  expect((await thief.post(other.action, { code })).status).toBe(401)
  const [recovery = ''] = codes
  expect((await thief.post(other.action, { code: recovery })).status).toBe(303)
  expect((await thief.post(other.action, { code: recovery })).status).toBe(400)
})

test('a login waits for its code through a restart', async () => {
  const { secret } = await setUp('grace')
  const browser = new PlainBrowser(gateway.url)
  const page = await afterPassword(browser, '/hello/code', 'grace')
  await gateway.stop()
  gateway = await startGatewayProcess({ config, dataFolder })
  const after = browser.at(gateway.url)
  expect((await after.post(page.action, { code: codeOf(secret, 1) })).status).toBe(303)
})

test('guesses are counted and lock the second factor, and nothing else', async () => {
  const { secret } = await setUp('joan')
  const browser = new PlainBrowser(gateway.url)
  const page = await afterPassword(browser, '/hello/code', 'joan')
  const statuses: number[] = []
  for (let i = 0; i < 8; i++) statuses.push((await browser.post(page.action, { code: '000000' })).status)
  expect(statuses.slice(0, 4)).toEqual([401, 401, 401, 401])
  expect(statuses).toContain(429)
  const right = await browser.post(page.action, { code: codeOf(secret, 1) })
  expect(right.status).toBe(429)
  expect((await new PlainBrowser(gateway.url).logIn('/hello', 'joan', password)).status).toBe(303)
})

test('the account API shows and ends sessions, and changes factors only after a step-up', async () => {
  const { browser, secret } = await setUp('mary')
  const weak = new PlainBrowser(gateway.url)
  expect((await weak.logIn('/hello', 'mary', password)).location).toBe('/hello')

  const refused = await api<{ stepUp?: true }>(weak, 'POST', '/account/factors/totp')
  expect([refused.status, refused.body.stepUp]).toEqual([403, true])
  const { factors } = (await api<AccountFactors>(weak, 'GET', '/account/factors')).body
  expect(factors.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['totp Authenticator app'])
  const [mine] = factors
  expect((await api(weak, 'DELETE', `/account/factors/${mine?.id}`)).status).toBe(403)
  const step = await weak.get('/account/step-up')
  expect(step.location).toMatch(/^\/auth\/formLogin\?login=/)

  const begun = await api<TotpEnrolment>(browser, 'POST', '/account/factors/totp')
  expect(begun.status).toBe(200)
  const { enrolment, secret: second } = begun.body
  const wrong = await api(browser, 'POST', '/account/factors/totp/confirm', { enrolment, code: '000000' })
  expect(wrong.status).toBe(400)
  const stolen = await api(weak, 'POST', '/account/factors/totp/confirm', { enrolment, code: codeOf(second) })
  expect(stolen.status).toBe(403)
  const sent = { enrolment, code: codeOf(second), name: 'Tablet' }
  const enrolled = await api<EnrolledFactor>(browser, 'POST', '/account/factors/totp/confirm', sent)
  expect([enrolled.status, enrolled.body.factor.name]).toEqual([201, 'Tablet'])
  expect((await api(browser, 'POST', '/account/factors/totp/confirm', sent)).status).toBe(400)
  expect((await api(browser, 'PATCH', `/account/factors/${mine?.id}`, { name: 'Old phone' })).status).toBe(204)
  expect((await api(browser, 'DELETE', `/account/factors/${mine?.id}`)).status).toBe(204)
  const later = new PlainBrowser(gateway.url)
  const page = await afterPassword(later, '/hello/code', 'mary')
  expect((await later.post(page.action, { code: codeOf(secret, 1) })).status).toBe(401)
  expect((await later.post(page.action, { code: codeOf(second, 1) })).status).toBe(303)

  const listed = (await api<AccountSessions>(browser, 'GET', '/account/sessions')).body.sessions
  expect(listed.map(({ current }) => current)).toEqual(expect.arrayContaining([true, false]))
  expect((await api(browser, 'DELETE', '/account/sessions')).body).toEqual({ ended: listed.length - 1 })
  expect((await weak.get('/hello')).status).toBe(303)
  expect((await browser.get('/hello/code')).status).toBe(200)
  const [current] = (await api<AccountSessions>(browser, 'GET', '/account/sessions')).body.sessions
  expect((await api(browser, 'DELETE', `/account/sessions/${current?.id}`)).status).toBe(204)
  expect((await browser.get('/hello/code')).status).toBe(303)
})

test('in the portal, a user who added an app enters its code at the next login, and others do not', async () => {
  const portal = await startGatewayProcess({ config: 'examples/portal' })
  onTestFinished(async () => void (await portal.stop()))
  const url = portal.url
  const owner = new PlainBrowser(url)
  expect((await owner.logIn('/portal/', 'joan', password)).location).toBe('/portal/')
  const begun = await api<TotpEnrolment>(owner, 'POST', '/api/account/factors/totp', undefined, url)
  const { enrolment, secret } = begun.body
  const confirmed = await api(
    owner,
    'POST',
    '/api/account/factors/totp/confirm',
    { enrolment, code: codeOf(secret) },
    url,
  )
  expect([begun.status, confirmed.status]).toEqual([200, 201])

  const thief = new PlainBrowser(url)
  const page = await afterPassword(thief, '/portal/', 'joan')
  expect((await thief.post(page.action, { code: '000000' })).status).toBe(401)
  expect((await api(thief, 'GET', '/api/account', undefined, url)).status).toBe(401)
  expect((await thief.post(page.action, { code: codeOf(secret, 1) })).location).toBe('/portal/')
  expect((await api(thief, 'GET', '/api/account', undefined, url)).status).toBe(200)
  expect((await new PlainBrowser(url).logIn('/portal/', 'mary', password)).location).toBe('/portal/')
})
