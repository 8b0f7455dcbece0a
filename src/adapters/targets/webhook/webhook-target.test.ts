import { createHmac } from 'node:crypto'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import {
  hasLookups,
  hasPasswords,
  type LookupTarget,
  type Target,
  type TargetChange,
  type TargetRequest,
} from '#sdk/target/target.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { testServerCertificate, testServerKey, unrelatedCertificate } from '#testing/gateway/test-certificates.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { openWebhook } from '#testing/targets/crm-application.ts'
import { type Interference, PeopleApi } from '#testing/targets/people-api.ts'
import { peopleParams } from '#testing/targets/people-params.ts'

let api: PeopleApi
let changes: TargetChange[]
beforeEach(async () => {
  api = await PeopleApi.start()
  changes = []
})
afterEach(() => api.close())

const attributes = ['mail', 'displayName', 'phone']
const ada = userOf('ada', { displayName: ['Ada'] })

const request = (idempotencyKey = 'step 1'): TargetRequest => ({
  workflow: { id: 'w', name: 'w' },
  idempotencyKey,
  requestor: 'r',
  params: {},
  log: silentLogger,
  audit: (change) => void changes.push(change),
})

async function open(given: ParamValues = {}, base: ParamValues = peopleParams.whole): Promise<LookupTarget> {
  const target = await openWebhook({ ...base, url: api.url, ...given })
  onTestFinished(async () => target.close?.())
  return target as LookupTarget
}

const reported = () => changes.map(({ subject, action, value }) => `${action} ${subject} ${value}`)
const made = (method: string) => api.calls.filter((call) => call.method === method)

/** Interferes with the first requests of the method, this many times. */
function first(times: number, method: string, interfere: Interference): Interference {
  let left = times
  return (incoming, response, body) => {
    if (incoming.method !== method || left === 0) return false
    left--
    return interfere(incoming, response, body)
  }
}

const answer =
  (status: number, headers: Record<string, string> = {}, body: string | Buffer = ''): Interference =>
  (_, response) => {
    response.writeHead(status, headers).end(body)
    return true
  }

const cut: Interference = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
  response.write('{"half": ', () => response.destroy())
  return true
}

const hangUp: Interference = (incoming) => {
  incoming.socket.destroy()
  return true
}

describe('unusable answers', () => {
  test.each<[string, Interference, string]>([
    ['no JSON', answer(200, { 'content-type': 'application/json' }, '{"login": '), 'TARGET_FAILED'],
    ['no UTF-8', answer(200, {}, Buffer.from([0x22, 0xff, 0x22])), 'TARGET_FAILED'],
    ['a web page', answer(200, { 'content-type': 'text/html; charset=utf-8' }, '{}'), 'TARGET_FAILED'],
    ['a user without login', answer(200, {}, '{"name": "x"}'), 'TARGET_FAILED'],
    ['a user with two logins', answer(200, {}, '{"login": ["a", "b"]}'), 'TARGET_FAILED'],
    ['an attribute that is not a text', answer(200, {}, '{"login": "ada", "name": {"first": "A"}}'), 'TARGET_FAILED'],
    ['too much', answer(200, {}, `{"login": "ada", "name": "${'x'.repeat(5000)}"}`), 'TARGET_FAILED'],
    ['a redirect', answer(302, { location: 'http://127.0.0.1:1/' }), 'TARGET_FAILED'],
    ['who are you', answer(401), 'TARGET_FAILED'],
    ['compressed', answer(200, { 'content-encoding': 'gzip' }, 'x'), 'TARGET_FAILED'],
    ['not now', answer(503), 'TARGET_UNREACHABLE'],
    ['half an answer', cut, 'TARGET_UNREACHABLE'],
    ['nothing', hangUp, 'TARGET_UNREACHABLE'],
  ])('%s', async (_, interference, code) => {
    api.before = interference
    const target = await open({ maxAnswerKilobytes: '4', retries: '1' })
    await expect(target.findUser('ada', [], request())).rejects.toMatchObject({
      code,
      message: expect.stringContaining('target "test"'),
    })
  })

  test('an endlessly nested answer', async () => {
    const target = await open({ 'user.attribute.displayName': '$..first' })
    api.before = answer(200, {}, `{"login": "ada", "x": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`)
    await expect(target.findUser('ada', [], request())).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  })

  test('no answer, and one that arrives byte by byte, end with the deadline', async () => {
    const target = await open({ timeoutMillis: '300' })
    for (const interference of [
      () => true,
      ((_, response) => {
        const timer = setInterval(() => response.write(' '), 20)
        response.on('close', () => clearInterval(timer))
        return true
      }) satisfies Interference,
    ]) {
      api.before = interference
      const start = performance.now()
      await expect(target.findUser('ada', [], request())).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
      expect(performance.now() - start).toBeLessThan(10_000)
    }
  })

  test('another user is treated as not found', async () => {
    api.before = answer(200, {}, '[{"login": "adam"}, {"login": "bob"}]')
    const target = await open()
    expect(await target.findUser('ada', [], request())).toBeUndefined()
    expect((await target.findUser('adam', [], request()))?.userID).toBe('adam')
  })

  test('a user with the same login in another letter case is not the one to create', async () => {
    api.before = answer(200, {}, '{"login": "ada", "name": "Ada"}')
    const target = await open()
    const create = target.createUser(userOf('ADA', { displayName: ['Ada'] }), attributes, request())
    await expect(create).rejects.toMatchObject({ code: 'CONFLICT' })
    await target.createUser(ada, attributes, request())
    expect(changes).toEqual([])
  })

  test('__proto__ is plain data', async () => {
    api.before = answer(200, {}, '{"login": "ada", "__proto__": {"name": "x"}, "constructor": "y"}')
    const target = await open({ 'user.attribute.displayName': '$.name' })
    expect((await target.findUser('ada', [], request()))?.attributes.values('displayName')).toEqual([])
  })
})

describe('changes with an unknown outcome', () => {
  test.each<[string, Interference]>([
    ['500 after it was done', answer(500)],
    ['cut off in the answer', cut],
    ['hung up after it was done', hangUp],
  ])('%s: created once, reported once', async (_, interference) => {
    const target = await open()
    api.after = first(1, 'POST', interference)
    await target.createUser(userOf('ada', { displayName: ['Ada'] }, ['group1']), attributes, request())
    expect(api.people.size).toBe(1)
    expect(made('POST')).toHaveLength(1)
    expect(reported()).toEqual(['add entry ada', 'add attribute Ada', 'add group group1'])
  })

  test('a change that was not made is not reported, and not made twice', async () => {
    const target = await open()
    for (const interference of [answer(500), hangUp, answer(200, { 'content-type': 'text/html' }, '<p>log in</p>')]) {
      api.calls.length = 0
      api.before = first(1, 'POST', interference)
      await expect(target.createUser(ada, attributes, request())).rejects.toThrow(/createUser of target "test"/)
      expect(made('POST')).toHaveLength(1)
    }
    expect(api.people.size).toBe(0)
    expect(changes).toEqual([])
  })

  test('a change and a deletion are checked, too', async () => {
    const target = await open({ retries: '0' })
    await target.createUser(ada, attributes, request())
    changes = []
    api.after = first(1, 'PUT', answer(500))
    await target.syncUser(userOf('ada', { displayName: ['Zoe'] }), syncOptions(attributes), request())
    api.after = first(1, 'DELETE', cut)
    await target.deleteUser(ada, request())
    expect(reported()).toEqual(['replace attribute Zoe', 'delete entry ada'])
    await target.createUser(ada, attributes, request())
    api.before = first(9, 'DELETE', answer(500))
    await expect(target.deleteUser(ada, request())).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(api.people.size).toBe(1)
  })

  test('a partial change is reported as far as it went, and the rest can follow later', async () => {
    const target = await open({ retries: '0' }, peopleParams.units)
    const user = userOf('ada', { displayName: ['Ada'] }, ['group1', 'group2'])
    api.before = (incoming, response, body) =>
      incoming.url?.includes('group2/who') === true && answer(500)(incoming, response, body)
    await expect(target.createUser(user, attributes, request())).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(reported()).toEqual(['add entry ada', 'add attribute Ada', 'add group group1'])
    api.before = () => false
    await target.syncUser(user, syncOptions(attributes), request())
    expect(reported().at(-1)).toBe('add group group2')
    expect((await target.findUser('ada', attributes, request()))?.groups).toEqual(['group1', 'group2'])
  })

  test('an API with idempotency keys gets the same key again', async () => {
    const target = await open({ idempotencyKeys: 'true' })
    api.before = first(2, 'POST', answer(502))
    await target.createUser(ada, attributes, request())
    await target.createUser(userOf('bob'), attributes, request())
    await target.deleteUser(userOf('bob'), request())
    await target.createUser(userOf('bob'), attributes, request('step 2'))
    const keys = made('POST').map(({ headers }) => headers['idempotency-key'])
    expect(keys).toHaveLength(5)
    expect(new Set(keys.slice(0, 3)).size).toBe(1)
    expect(new Set(keys).size).toBe(3)
  })
})

describe('retries', () => {
  test('reads and idempotent changes are retried', async () => {
    const target = await open()
    api.before = first(2, 'GET', answer(503))
    await target.createUser(ada, attributes, request())
    api.before = first(2, 'PUT', hangUp)
    await target.syncUser(userOf('ada', { displayName: ['Zoe'] }), syncOptions(attributes), request())
    expect(api.people.get('ada')?.name).toBe('Zoe')
    expect(made('PUT')).toHaveLength(3)
  })

  test('a deletion that the first attempt made is reported', async () => {
    const target = await open()
    await target.createUser(ada, attributes, request())
    changes = []
    api.after = first(1, 'DELETE', hangUp)
    await target.deleteUser(ada, request())
    expect(reported()).toEqual(['delete entry ada'])
  })

  test('Retry-After is respected, and passed on if there is no time for it', async () => {
    const target = await open()
    api.before = first(1, 'POST', answer(429, { 'retry-after': '1' }))
    const start = performance.now()
    await target.createUser(ada, attributes, request())
    expect(performance.now() - start).toBeGreaterThan(990)
    api.before = first(1, 'GET', answer(503, { 'retry-after': '60' }))
    await expect(target.findUser('ada', [], request())).rejects.toMatchObject({
      code: 'TARGET_UNREACHABLE',
      retryAfter: 60,
    })
    expect(performance.now() - start).toBeLessThan(20_000)
  })

  test('an unreachable API', async () => {
    const target = await open({ url: `http://127.0.0.1:${await freePort()}`, retries: '1' })
    await expect(target.createUser(ada, attributes, request())).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(changes).toEqual([])
  })

  test('a cancelled step is not waited for', async () => {
    const target = await open()
    api.before = () => true
    const signal = AbortSignal.timeout(50)
    const start = performance.now()
    await expect(target.findUser('ada', [], { ...request(), signal })).rejects.toMatchObject({
      code: 'TARGET_UNREACHABLE',
    })
    expect(performance.now() - start).toBeLessThan(10_000)
  })
})

describe('values', () => {
  test('the API’s own refusals', async () => {
    const target = await open()
    const codes: [number, string][] = [
      [400, 'BAD_REQUEST'],
      [422, 'BAD_REQUEST'],
      [409, 'CONFLICT'],
      [412, 'VERSION_MISMATCH'],
      [403, 'TARGET_FAILED'],
      [501, 'TARGET_FAILED'],
    ]
    for (const [status, code] of codes) {
      api.before = first(1, 'POST', answer(status, {}, 'secret echo'))
      const failure = await target.createUser(ada, attributes, request()).catch((error: unknown) => error)
      expect(failure).toMatchObject({ code })
      expect(String((failure as Error).stack)).not.toContain('secret echo')
    }
  })

  test('an attribute that no request contains is rejected before any change', async () => {
    const target = await open()
    const user = userOf('ada', { shoeSize: ['42'] })
    await expect(target.createUser(user, ['shoeSize'], request())).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      publicText: expect.stringContaining('shoeSize'),
    })
    await target.createUser(userOf('ada'), attributes, request())
    api.calls.length = 0
    const change = target.syncUser(user, syncOptions(['shoeSize', 'mail']), request())
    await expect(change).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(made('PUT')).toEqual([])
  })

  test.each(['', '.', '..', '\ud800', 'x'.repeat(9000)])('the login %j cannot be part of a path', async (login) => {
    const target = await open()
    await expect(target.createUser(userOf(login), attributes, request())).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(api.calls).toEqual([])
  })

  test('a password is in the body of its request and nowhere else', async () => {
    const target = await open({
      setPassword: 'PUT /people/{userID}/password',
      'setPassword.body': '{"p": "{password}"}',
    })
    if (!hasPasswords(target)) throw new Error('the target has no passwords')
    await target.createUser(ada, attributes, request())
    changes = []
    api.before = first(1, 'PUT', answer(204))
    await target.setUserPassword(ada, 'correct "horse', request())
    const [call] = made('PUT')
    expect([call?.url, call?.body]).toEqual(['/v1/people/ada/password', '{"p":"correct \\"horse"}'])
    expect(changes).toEqual([{ subject: 'attribute', action: 'replace', attribute: 'password' }])
    api.before = first(9, 'PUT', answer(422, {}, 'too weak: correct "horse'))
    const refused = await target.setUserPassword(ada, 'correct "horse', request()).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'BAD_REQUEST' })
    expect(String((refused as Error).stack)).not.toContain('horse')
    await expect(target.setUserPassword(userOf('bob'), 'x', request())).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('any status can mean "not found"', async () => {
    const target = await open({ 'findUser.notFound': ['204', '404'] })
    api.before = answer(204)
    expect(await target.findUser('ada', [], request())).toBeUndefined()
  })

  test('groups cannot be changed if the API has no requests for it', async () => {
    const { userGroups, addMember, removeMember, ...rest } = peopleParams.units
    const { 'userGroups.items': _, 'addMember.body': __, ...bare } = rest
    expect([userGroups, addMember, removeMember]).not.toContain(undefined)
    const target = await open({}, bare)
    const user = userOf('ada', {}, ['group1'])
    await expect(target.createUser(user, attributes, request())).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
    expect(api.people.size).toBe(0)
  })
})

describe('lists', () => {
  const everyone = { offset: 0, limit: 10 }

  test('are read to their end, whatever the pages contain', async () => {
    const target = await open()
    for (const login of ['a', 'b', 'c', 'd', 'e']) await target.createUser(userOf(login), attributes, request())
    expect(await target.searchUsers(everyone)).toMatchObject({ total: 5 })
    expect(await target.searchGroups(everyone)).toMatchObject({ total: 3 })
  })

  test('that never end, or repeat, are rejected', async () => {
    const target = await open({ maxEntries: '20' })
    api.before = answer(200, {}, '{"people": [{"login": "a"}], "more": "1"}')
    await expect(target.searchUsers(everyone)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    let page = 0
    api.before = (...call) => answer(200, {}, `{"people": [{"login": "a${page}"}], "more": "${page++}"}`)(...call)
    await expect(target.searchUsers(everyone)).rejects.toMatchObject({ code: 'BAD_REQUEST', keyword: 'tooMany' })
    api.before = answer(200, {}, '[{"name": "a"}, {"name": "b"}]')
    await expect(target.searchGroups(everyone)).rejects.toMatchObject({ code: 'BAD_REQUEST', keyword: 'tooMany' })
  })

  test('that end before their total are rejected', async () => {
    const totals = { 'searchUsers.total': '$.total', 'searchGroups.total': '$.total', 'searchGroups.items': '$.units' }
    const target = await open(totals)
    api.before = answer(200, {}, '{"people": [{"login": "a"}], "total": 2}')
    const early = { code: 'TARGET_FAILED', message: expect.stringContaining('ends after 1 of 2 entries') }
    await expect(target.searchUsers(everyone)).rejects.toMatchObject(early)
    let page = 0
    const units = (second: string): Interference => {
      page = 0
      return (...call) =>
        answer(
          200,
          {},
          `{"units": [${page++ === 0 ? '{"name": "a"}' : second}], "total": ${page === 1 ? 3 : 2}}`,
        )(...call)
    }
    api.before = units('')
    await expect(target.searchGroups(everyone)).rejects.toMatchObject(early)
    // One was deleted meanwhile.
    api.before = units('{"name": "b"}')
    expect(await target.searchGroups(everyone)).toMatchObject({ total: 2 })
  })

  test('exist only if all of their requests are configured', async () => {
    expect(hasLookups(await open({}, peopleParams.units))).toBe(false)
    expect(hasLookups(await open())).toBe(true)
  })
})

describe('authentication', () => {
  test.each<[ParamValues, string, string]>([
    [{ bearerToken: 'tok' }, 'authorization', 'Bearer tok'],
    [{ basicUser: 'u', basicPassword: 'pä:ß' }, 'authorization', `Basic ${Buffer.from('u:pä:ß').toString('base64')}`],
    [{ apiKey: 'k', apiKeyHeader: 'X-Key' }, 'x-key', 'k'],
    [{ headers: ['X-Tenant: acme', 'X-Other: {{1}}'] }, 'x-other', '{1}'],
  ])('%j', async (given, header, value) => {
    const target = await open(given)
    await target.findUser('ada', [], request())
    expect(api.calls[0]?.headers[header]).toBe(value)
  })

  test('a signature covers time, method, path and body', async () => {
    const target = await open({ signingSecret: 's3cret', signatureHeader: 'X-Sig', timestampHeader: 'X-Time' })
    await target.createUser(userOf('a/ü?'), attributes, request())
    expect(api.calls).toHaveLength(2)
    for (const { method, url, headers, body } of api.calls) {
      const signed = `${headers['x-time']}\n${method}\n${url}\n${body}`
      expect(headers['x-sig']).toBe(`v1=${createHmac('sha256', 's3cret').update(signed).digest('hex')}`)
    }
  })

  test('no error contains a secret', async () => {
    const target = await open({ bearerToken: 'tok-3n', signingSecret: 's3cret' })
    for (const interference of [answer(401), hangUp, answer(200, {}, '{')]) {
      api.before = interference
      const failure = await Promise.resolve(target.findUser('ada', [], request())).catch((error: unknown) => error)
      expect(JSON.stringify(failure, Object.getOwnPropertyNames(failure))).not.toMatch(/tok-3n|s3cret/)
    }
  })

  test('a server without a trusted certificate gets nothing', async () => {
    let asked = 0
    const server = createHttpsServer({ key: testServerKey, cert: testServerCertificate }, (_, response) => {
      asked++
      response.statusCode = 404
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    for (const given of [{}, { certificate: unrelatedCertificate }]) {
      const stranger: Target = await open({ url, retries: '0', ...given })
      await expect(stranger.findUser('ada', [], request())).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    }
    expect(asked).toBe(0)
    const known = await open({ url, certificate: testServerCertificate })
    expect(await known.findUser('ada', [], request())).toBeUndefined()
    expect(asked).toBe(1)
    await known.close?.()
  })
})
