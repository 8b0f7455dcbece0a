import { execFile } from 'node:child_process'
import { request } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { commandOutput } from '#testing/gateway/command.ts'
import { gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import type { ReceivedMail } from '#testing/servers/mail-server.ts'
import { registrationKeys, registrationStory } from '#testing/stories/registration-story.ts'

const run = promisify(execFile)

/** The field lists of the specification, section 2.1, copied from it. */
const specification = {
  Config: `
| frontPage | object |
| frontPage.title | string |
| frontPage.text | string |
| homeURL | string |
| logoutURL | string |
| attributes | array of Attribute |
| attributeNameList | array of string |
| requireReason | boolean |
| preSetPassword | boolean |
| requireReCaptcha | boolean |
| requireTermsAndConditions | boolean |
| reasonIsList | boolean |
| reasons | array of string |
| submitButtonText | string |
| submittedText | string |`,
  Attribute: `
| name | string |
| displayName | string |
| readOnly | boolean |
| required | boolean |
| regEx | string |
| minChars | integer |
| maxChars | integer |
| unique | boolean |
| type | string |
| values | array of AttributeValueListItem |
| show | boolean |`,
  AttributeValueListItem: `
| name | string |
| value | string |
| num | integer |`,
  SubmittedResponse: `
| addNewUsers | boolean |`,
  ErrorResponse: `
| errors | array of string |`,
  RegisterRequest: `
| attributes | object |`,
}

type Shape = keyof typeof specification

const fields = (shape: Shape): { field: string; type: string }[] =>
  Array.from(specification[shape].matchAll(/^\| (\S+) \| (.+) \|$/gm), ([, field = '', type = '']) => ({ field, type }))

/** Fields that an attribute has only if configured. */
const isAbsent = (value: unknown, field: string): boolean =>
  ['regEx', 'minChars', 'maxChars'].includes(field) && at(value, field) === undefined

function isOfType(value: unknown, type: string): boolean {
  const item = /^array of (.+)$/.exec(type)?.[1]
  if (item !== undefined) return Array.isArray(value) && value.every((one) => isOfType(one, item))
  if (type in specification)
    return fields(type as Shape).every(
      ({ field, type: of }) => isAbsent(value, field) || isOfType(at(value, field), of),
    )
  return type === 'integer' ? Number.isInteger(value) : value !== null && typeof value === type
}

const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], value)

/** Missing fields, and fields of another type. */
const differences = (value: unknown, shape: Shape): string[] =>
  fields(shape).flatMap(({ field, type }) => (isOfType(at(value, field), type) ? [] : [`${field}: ${type}`]))

const linkIn = (mail: ReceivedMail): URL => {
  const text = mail.parts.find(({ type }) => type.startsWith('text/plain'))?.body ?? ''
  return new URL(/https?:\/\/\S+/.exec(text)?.[0] ?? '')
}

interface Form {
  readonly attributes: readonly { readonly name: string }[]
  readonly attributeNameList: readonly string[]
}

interface Description {
  readonly definitions: Readonly<Record<Shape, { readonly properties: object }>>
}

const jsonOf = async <T>(answer: Response): Promise<T> => (await answer.json()) as T

const runs = (url: string, ...args: string[]): Promise<string> =>
  commandOutput('workflow', 'list', '--data', url, ...args)

test('each endpoint answers with the fields of the specification', async () => {
  const { start } = await registrationStory()
  const { get, post, gateway } = await start()
  const config = await get('/open/register/config')
  expect([config.status, config.headers.get('content-type'), config.headers.get('cache-control')]).toEqual([
    200,
    'application/json; charset=utf-8',
    'no-store',
  ])
  const form = await jsonOf<Form>(config)
  expect(differences(form, 'Config')).toEqual([])
  expect(differences(form.attributes[0], 'Attribute')).toEqual([])
  expect(form.attributes.map(({ name }) => name)).toEqual(form.attributeNameList)

  const values = await jsonOf<unknown[]>(await get('/open/register/values?name=team&search=re'))
  expect(values).toEqual([{ name: 'Red', value: 'red', num: 0 }])
  expect(differences(values[0], 'AttributeValueListItem')).toEqual([])
  expect(await (await get('/open/register/values')).json()).toHaveLength(2)

  const submitted = await post('/open/register/submit', {
    attributes: { uid: 'ada', mail: 'ada@example.com', team: 'blue' },
  })
  expect(submitted.status).toBe(200)
  const answer = await jsonOf<{ workflowId: string }>(submitted)
  expect(differences(answer, 'SubmittedResponse')).toEqual([])
  await until(async () => (await runs(gateway.dataFolder, '--state', 'completed')).includes(answer.workflowId), 20_000)

  const refused = await post('/open/register/submit', {
    attributes: { uid: 'A', mail: 'ada@example.com', team: 'green' },
  })
  expect(refused.status).toBe(500)
  const errors = await refused.json()
  expect(differences(errors, 'ErrorResponse')).toEqual([])
  expect(errors).toEqual({
    errors: [
      'Login must have at least 2 characters',
      'Logins are made of letters and digits',
      'Team has a value that is not in the list',
    ],
  })
  const taken = await post('/open/register/submit', {
    attributes: { uid: 'ada2', mail: 'ada@example.com', team: 'blue' },
  })
  expect([taken.status, await taken.json()]).toEqual([500, { errors: ['Mail is not available'] }])
  // The specification wants 500, which is no fault of the gateway and so no alert.
  const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  expect(metrics).toMatch(/^gatehouse_http_requests_total\{.*status="500",outcome="refused"\} 2$/m)
  expect(metrics).not.toContain('outcome="failed"')

  const swagger = await jsonOf<Description>(await get('/open/register/swagger.json'))
  expect(swagger).toMatchObject({
    swagger: '2.0',
    info: { version: '1.0.0' },
    schemes: ['https', 'http'],
    basePath: '/open',
  })
  for (const scheme of ['securityDefinitions', 'security']) expect(JSON.stringify(swagger)).not.toContain(`"${scheme}"`)
  for (const shape of Object.keys(specification) as Shape[]) {
    const names = fields(shape).flatMap(({ field }) => (field.includes('.') ? [] : [field]))
    expect(Object.keys(swagger.definitions[shape].properties)).toEqual(expect.arrayContaining(names))
  }
  expect(await (await get('/open/register/openapi.json')).json()).toMatchObject({ openapi: '3.1.0' })
})

/** A request over TLS that trusts only the certificate of the story. */
const overTls = (url: string, body?: unknown): Promise<{ status: number | undefined; text: string }> =>
  new Promise((resolve, reject) => {
    const options = {
      method: body === undefined ? 'GET' : 'POST',
      ca: testServerCertificate,
      headers: { 'content-type': 'application/json' },
    }
    request(url, options, async (response) =>
      resolve({ status: response.statusCode, text: Buffer.concat(await response.toArray()).toString() }),
    )
      .on('error', reject)
      .end(body === undefined ? undefined : JSON.stringify(body))
  })

test('the API is offered over https and over http', async () => {
  const { start, config } = await registrationStory()
  const plain = await start()
  const gateway = await startGatewayProcess({ config, tls: true, environment: registrationKeys })
  onTestFinished(async () => void (await gateway.stop()))
  expect([new URL(plain.gateway.url).protocol, new URL(gateway.url).protocol]).toEqual(['http:', 'https:'])
  for (const path of ['config', 'values?name=team']) {
    const secure = await overTls(`${gateway.url}/open/register/${path}`)
    const open = await plain.get(`/open/register/${path}`)
    expect([secure.status, JSON.parse(secure.text)]).toEqual([200, await open.json()])
  }
  const body = { attributes: { uid: 'ada', mail: 'ada@example.com' } }
  expect((await overTls(`${gateway.url}/open/register/submit`, body)).status).toBe(200)
  expect((await plain.post('/open/register/submit', body)).status).toBe(200)
})

test('other faults are reported in the same format, and start nothing', async () => {
  const { start } = await registrationStory()
  const { gateway, post } = await start()
  const url = `${gateway.url}/open/register/submit`
  const json = { 'content-type': 'application/json' }
  const body = JSON.stringify({ attributes: { uid: 'ada' } })
  const faults: [RequestInit, number][] = [
    [{ method: 'POST', headers: json, body: '{' }, 400],
    [{ method: 'POST', headers: json, body: '{"attributes":{"uid":"ada","uid":"eve"}}' }, 400],
    [{ method: 'POST', headers: { 'content-type': 'text/plain' }, body }, 415],
    [{ method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'attributes=x' }, 415],
    [{ method: 'PUT', headers: json, body }, 405],
    [{ method: 'GET' }, 405],
    [{ method: 'POST', headers: json, body: JSON.stringify({ attributes: { uid: 'x'.repeat(300_000) } }) }, 413],
  ]
  for (const [request, status] of faults) {
    const answer = await fetch(url, request)
    expect(answer.status).toBe(status)
    expect(await answer.json()).toMatchObject({ errors: [expect.any(String)] })
  }
  expect((await post('/open/register/nothing', {})).status).toBe(404)
  expect((await runs(gateway.dataFolder)).trim()).toBe('')
})

test('a registration waits for the confirmation of its mail, also over a restart', async () => {
  const { start, mails } = await registrationStory()
  const before = await start()
  const password = 'correct horse battery'
  const body = { attributes: { uid: 'ada', mail: 'ada@example.com' }, password, password2: password }
  const submitted = await before.post('/confirmed/register/submit', body)
  expect(await submitted.json()).toMatchObject({ verificationSent: true })
  await until(async () => mails.mails.length === 1, 20_000)
  const [mail] = mails.mails
  if (mail === undefined) throw new Error('a mail came')
  expect(mail.to).toEqual(['ada@example.com'])
  expect(mail.raw).not.toContain('horse')
  const link = linkIn(mail)
  expect(link.href.startsWith(`${before.gateway.url}/confirmed/register/verify?token=`)).toBe(true)
  expect((await runs(before.gateway.dataFolder)).trim()).toBe('')

  const { dataFolder } = before.gateway
  await before.gateway.stop()
  const after = await start({ dataFolder })
  const page = await after.get(`${link.pathname}${link.search}`)
  expect([page.status, page.headers.get('content-security-policy')]).toEqual([
    200,
    expect.stringContaining("default-src 'none'"),
  ])
  expect((await runs(dataFolder)).trim()).toBe('')
  const confirm = (headers: Record<string, string> = {}) =>
    fetch(`${after.gateway.url}${link.pathname}`, {
      method: 'POST',
      headers,
      body: new URLSearchParams({ token: link.searchParams.get('token') ?? '' }),
    })
  expect((await confirm({ origin: 'https://evil.example' })).status).toBe(403)
  const pressed = await Promise.all([confirm(), confirm(), confirm()])
  expect(pressed.map(({ status }) => status)).toContain(200)
  await until(async () => /completed/.test(await runs(dataFolder)), 20_000)
  expect(
    (await runs(dataFolder))
      .trim()
      .split('\n')
      .filter((line) => line.includes('join')),
  ).toHaveLength(1)
  expect((await confirm()).status).toBe(410)
  expect(before.gateway.output() + after.gateway.output()).not.toContain('horse')
})

test('a user is invited from the command line, and by users that may invite, and registers once', async () => {
  const { start, mails, config } = await registrationStory()
  const { gateway, get, post } = await start()
  const [boss, eve] = [await gateway.token('--subject', 'boss'), await gateway.token('--subject', 'eve')]
  expect((await post('/inviting/register/invitations', { email: 'x@example.com' }, eve)).status).toBe(403)
  expect((await post('/inviting/register/submit', { attributes: { uid: 'ada' } }, eve)).status).toBe(500)
  const made = await post(
    '/inviting/register/invitations',
    { email: 'ada@example.com', attributes: { team: 'red' } },
    boss,
  )
  expect(made.status).toBe(201)
  await until(async () => mails.mails.length === 1, 20_000)
  const [mail] = mails.mails
  if (mail === undefined) throw new Error('a mail came')
  const invitation = linkIn(mail).searchParams.get('invitation')
  expect(await (await get(`/inviting/register/invitation?token=${invitation}`, eve)).json()).toMatchObject({
    email: 'ada@example.com',
    attributes: { team: 'red' },
  })
  const tries = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      post('/inviting/register/submit', { attributes: { uid: `ada${i}` }, invitation }, eve),
    ),
  )
  expect(tries.filter(({ status }) => status === 200)).toHaveLength(1)

  const command = (...args: string[]) =>
    run(gatehouse, ['user', ...args, '--config', config, '--data', gateway.dataFolder, '--application', 'confirmed'], {
      env: { ...process.env, ...registrationKeys, GATEHOUSE_URL: gateway.url },
    })
  const invited = await command('invite', 'bob@example.com', '--attribute', 'team=blue', '--by', 'ops')
  const id = invited.stdout.split(' ', 1)[0] ?? ''
  await until(async () => mails.mails.length === 2, 20_000)
  expect((await command('invitations')).stdout).toContain('open  bob@example.com')
  expect((await command('revoke-invitation', id)).stdout).toContain('revoked')
  await expect(command('revoke-invitation', id)).rejects.toMatchObject({
    stderr: expect.stringContaining('accepted or revoked'),
  })
  await expect(command('invite', 'nobody')).rejects.toMatchObject({ stderr: expect.stringContaining('mail address') })
  const audit = await commandOutput('audit', 'tail', '--data', gateway.dataFolder)
  expect(audit).toContain('bob@example.com')
})

/** `npm run siege` has more. */
const crowd = Number(process.env['SIEGE_REGISTRATIONS'] ?? 200)

describe.each([
  ['SQLite', () => Promise.resolve(undefined)],
  ['PostgreSQL', freshSchema],
])('on %s', (name, database) => {
  test.skipIf(name === 'PostgreSQL' && postgresUrl() === '')(
    'one of many concurrent registrations of one login wins',
    async () => {
      const { start } = await registrationStory()
      const url = await database()
      const first = await start(url === undefined ? {} : { database: url })
      const gateways = url === undefined ? [first] : [first, await start({ database: url })]
      const statuses = await Promise.all(
        Array.from({ length: crowd }, async (_, i) => {
          const { post } = gateways[i % gateways.length] ?? first
          let answer = await post('/asked/register/submit', { attributes: { uid: 'ada' } })
          // An overloaded database says so; the client tries again.
          for (let again = 0; answer.status === 503 && again < 10; again++) {
            await answer.arrayBuffer()
            await delay(1_000)
            answer = await post('/asked/register/submit', { attributes: { uid: 'ada' } })
          }
          return `${answer.status} ${answer.status === 200 ? '' : await answer.text()}`
        }),
      )
      const refused = `500 ${JSON.stringify({ errors: ['Login is not available'] })}\n`
      expect(statuses.filter((status) => status.startsWith('200'))).toHaveLength(1)
      expect([...new Set(statuses.filter((status) => !status.startsWith('200')))]).toEqual([refused])
      // The winner waits for an approval: no other user gets the login meanwhile.
      const late = await first.post('/asked/register/submit', { attributes: { uid: 'ada' } })
      expect(await late.json()).toEqual({ errors: ['Login is not available'] })
    },
  )
})
