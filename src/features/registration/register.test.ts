import { createSecretKey, hash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { valueSources } from '#catalog/catalog.ts'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { entryIdentity, issuerIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { descriptionOf, text } from '#sdk/module/parameter-types.ts'
import { type FakeHostOptions, fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { type FakeRequest, fakeRequest } from '#testing/modules/fake-request.ts'
import { MemoryRegistrations } from '#testing/workflows/memory-registrations.ts'
import { MemoryRuns } from '#testing/workflows/memory-runs.ts'
import { leadingZeroBits } from './human-check.ts'
import register, { registerErrors } from './register.ts'

const origin = 'https://portal.example.com'

const unusableLogin = 'Login is reserved, too long, or has characters that cannot be used; choose another'

const basic = {
  'frontPage.title': 'Join',
  'frontPage.text': 'Come in',
  homeURL: '/home',
  logoutURL: '/logout',
  uidAttributeName: 'uid',
  workflowName: 'join',
  attributeNames: ['uid', 'mail', 'team'],
  'uid.displayName': 'Login',
  'uid.unique': 'true',
  'mail.displayName': 'Mail',
  'mail.required': 'false',
  'team.displayName': 'Team',
  'team.type': 'list',
  'team.values': ['Blue=blue', 'Red=red'],
  'team.required': 'false',
  submitsPerMinute: '0',
  submitsPerValuePerHour: '0',
  readsPerMinute: '0',
}

const verified = {
  ...basic,
  'mail.required': 'true',
  verifyEmail: 'true',
  publicURL: `${origin}/register`,
}

const invited = { ...basic, invitationURL: `${origin}/join?lang=en`, inviterRule: ['dn;uid=boss,o=Tremolo'] }

const entry = (uid: string) => ({
  dn: Dn.parse(`uid=${uid},ou=people,o=Tremolo`),
  attributes: Attributes.from({ uid: [uid], mail: [`${uid}@example.com`], objectClass: ['person'] }),
})

const person = (uid: string, level: number, attributes: Record<string, string[]> = {}): Subject => ({
  dn: Dn.parse(`uid=${uid},o=Tremolo`),
  identity: entryIdentity('test', uid),
  uid,
  attributes: Attributes.from({ uid: [uid], ...attributes }),
  level,
  chain: 'chain',
})

const anonymous = person('anonymous', 0)
const boss = person('boss', 20)

function parse(params: ParamValues) {
  const issues = noIssues()
  const context = {
    ...fakeParseContext(),
    valueSource: (className: string, given: ReturnType<typeof fakeParams>, path: readonly (string | number)[]) => {
      const module = valueSources.find(className)
      if (module === undefined) issues.error(path, `no value source named "${className}"`)
      return module?.prepare(given, issues, fakeParseContext())
    },
  }
  return { prepared: register.prepare(fakeParams(params), issues, context), issues: issueTexts(issues.list) }
}

async function open(
  params: ParamValues = basic,
  options: Pick<FakeHostOptions, 'now' | 'runs' | 'entries' | 'texts'> = {},
) {
  const registrations = new MemoryRegistrations()
  const { prepared, issues } = parse(params)
  expect(issues.filter((issue) => issue.startsWith('error'))).toEqual([])
  const host = fakeModuleHost({
    entries: [entry('alice')],
    ...options,
    registrations,
    secretKeys: [createSecretKey(Buffer.alloc(32, 7))],
    authorize: (subject) => ({ allowed: subject.uid === 'boss', verdicts: [] }),
  })
  const filter = await prepared.create(host)
  const send = async (path: string, request: FakeRequest = {}, subject = anonymous) => {
    const url = new URL(path, `${origin}/register/`)
    try {
      const response = await filter.handle(
        {
          request: fakeRequest({ ...request, url: url.href }),
          application: 'app',
          mount: '/register',
          pathInfo: url.pathname.slice('/register'.length),
          subject,
        },
        async () => {
          throw new Error('there is nothing behind this filter')
        },
      )
      const text = String(response.body ?? '')
      const isJson = text !== '' && String(response.headers['content-type']).startsWith('application/json')
      return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      const { headers, body } = registerErrors(error, 'r')
      return { status: error.status, headers: { ...headers, ...error.headers }, body: JSON.parse(String(body)) }
    }
  }
  const post = (body: unknown, subject = anonymous, headers: Record<string, string> = {}) =>
    send(
      'submit',
      {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      },
      subject,
    )
  const form = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(fields).toString(),
    })
  return { registrations, send, post, form, host }
}

const ada = { attributes: { uid: 'ada', mail: 'ada@example.com', team: 'blue' } }

describe('a registration', () => {
  test('starts the workflow with the fields of the form', async () => {
    const { post, registrations } = await open()
    const answer = await post({ ...ada, reason: ' new here ' })
    expect(answer).toMatchObject({ status: 200, body: { addNewUsers: false, workflowId: expect.any(String) } })
    expect(Object.keys(answer.body)).toEqual(['addNewUsers', 'workflowId'])
    expect(registrations.calls).toMatchObject([
      {
        head: { workflow: 'join', requester: 'anonymous', reason: 'new here', requestId: 'request-1' },
        asynchronous: true,
        params: {},
      },
    ])
    const [call] = registrations.calls
    expect(call?.user.userID).toBe('ada')
    expect(call?.user.attributes.toObject()).toEqual({ uid: ['ada'], mail: ['ada@example.com'], team: ['blue'] })
    expect(call?.password).toBeUndefined()
  })

  test('may only create an account; an anonymous requester gets a mail if it exists', async () => {
    const { post, registrations } = await open()
    await post(ada)
    const [call] = registrations.calls
    expect(call?.newAccount).toMatchObject({
      unique: expect.arrayContaining([{ attribute: 'uid', value: 'ada' }]),
      refusal: { recipient: 'ada@example.com', text: expect.stringContaining('There is already an account') },
    })
    await post({ attributes: { ...ada.attributes, uid: 'eve', mail: 'eve@example.com' } }, boss)
    expect(registrations.calls[1]?.newAccount).not.toHaveProperty('refusal')
  })

  test('by a logged-in user asks for the form to be reset', async () => {
    const { post, registrations } = await open()
    expect((await post(ada, boss)).body.addNewUsers).toBe(true)
    expect((await post({ attributes: { uid: 'eve' } }, anonymous)).body.addNewUsers).toBe(false)
    expect(registrations.calls[0]?.head.requester).toBe('boss')
  })

  test('reports every problem at once, and starts nothing', async () => {
    const { post, registrations } = await open({
      ...basic,
      requireReason: 'true',
      preSetPassword: 'true',
      requireTermsAndConditions: 'true',
      termsAndConditionsText: 'Be nice',
    })
    const answer = await post({ attributes: { uid: 'alice', mail: ' ', team: 'green', x: 'y' } })
    expect(answer).toMatchObject({ status: 500 })
    expect(answer.body).toEqual({
      errors: [
        'Password is required',
        'Please accept the terms and conditions',
        'Reason is required',
        'Invalid attribute x',
        'Mail has only spaces',
        'Team has a value that is not in the list',
      ],
    })
    expect(registrations.calls).toEqual([])
  })

  test('an invalid registration does not reveal whether a login exists', async () => {
    const { post } = await open({ ...basic, requireReason: 'true' })
    const errorsFor = async (uid: string) => (await post({ attributes: { uid } })).body.errors
    expect(await errorsFor('alice')).toEqual(await errorsFor('unheard-of'))
    expect((await post({ attributes: { uid: 'alice' }, reason: 'work' })).body.errors).toEqual([
      'Login is not available',
    ])
  })

  test('D5: absent, empty and null differ', async () => {
    const { post, registrations } = await open()
    expect((await post({ attributes: {} })).body.errors).toEqual(['Login is required'])
    expect((await post({ attributes: { uid: '', mail: '', team: '' } })).body.errors).toEqual(['Login is required'])
    expect(await post({ attributes: { uid: null } })).toMatchObject({
      status: 400,
      body: { errors: ['/attributes/uid must be text'] },
    })
    expect((await post({ attributes: { uid: 'ada' } })).status).toBe(200)
    expect(registrations.calls).toHaveLength(1)
  })

  test('D5: a reason that is not in the list is rejected', async () => {
    const { post, registrations } = await open({ ...basic, reasonIsList: 'true', reasons: ['work', 'study'] })
    expect((await post({ ...ada, reason: 'fun' })).body.errors).toEqual(['Reason is not in the list'])
    expect((await post({ ...ada, reason: 'work' })).status).toBe(200)
    expect(registrations.calls[0]?.head.reason).toBe('work')
  })

  test('D2: with submitLoggedInUser the subject comes only from the login', async () => {
    for (const attributeNames of [['mail'], ['uid', 'mail']]) {
      const given = { ...basic, attributeNames, submitLoggedInUser: 'true' }
      const params = Object.fromEntries(
        Object.entries(given).filter(
          ([name]) => !/^(?:team|uid)\./.test(name) || (name === 'uid.displayName' && attributeNames.length > 1),
        ),
      )
      const { post, registrations } = await open(params as ParamValues)
      expect((await post({ attributes: { mail: 'x@y', uid: 'victim' } }, boss)).status).toBe(500)
      expect((await post({ attributes: { mail: 'x@y', UID: 'victim' } }, boss)).body.errors).toEqual([
        'Invalid attribute UID',
      ])
      expect(await post({ attributes: { mail: 'x@y' } }, anonymous)).toMatchObject({ status: 403 })
      expect(registrations.calls).toEqual([])
      expect((await post({ attributes: { mail: 'x@y' } }, boss)).status).toBe(200)
      expect(registrations.calls).toMatchObject([{ head: { requester: 'boss' }, user: { userID: 'boss' } }])
      expect(registrations.calls[0]?.user.attributes.toObject()).toEqual({ uid: ['boss'], mail: ['x@y'] })
      expect(registrations.calls[0]).not.toHaveProperty('newAccount')
    }
  })

  describe('with submitLoggedInUser, of a caller without an entry,', () => {
    const isKept = ([name]: [string, unknown]) => !/^(?:team|uid)\./.test(name)
    const own = Object.fromEntries(
      Object.entries({ ...basic, attributeNames: ['mail'], submitLoggedInUser: 'true' }).filter(isKept),
    ) as ParamValues
    const mailing = { ...own, verifyEmail: 'true', 'mail.required': 'true', publicURL: `${origin}/register` }
    const outsider = (uid: string) => ({
      ...person(uid, 20),
      identity: issuerIdentity('https://idp.example.com', uid),
    })
    const body = { attributes: { mail: 'x@y.test' } }

    test.each([own, mailing])('is not about the user who has the same login', async (params) => {
      const runs = new MemoryRuns()
      const { post, registrations } = await open(params, { runs })
      expect(await post(body, outsider('Alice'))).toMatchObject({
        status: 403,
        body: { errors: [expect.stringContaining('belongs to another user')] },
      })
      expect([registrations.calls, registrations.mails]).toEqual([[], []])
      expect(runs.refused).toMatchObject([{ name: 'join', caller: 'Alice', subject: 'Alice' }])
      expect((await post(body, outsider('guest'))).status).toBe(200)
    })

    test('starts nothing when another user got the login before the mail address was confirmed', async () => {
      const entries: InsertEntry[] = []
      const { post, form, registrations } = await open(mailing, { entries })
      await post(body, outsider('guest'))
      const token = registrations.mails[0]?.secret ?? ''
      entries.push(entry('guest'))
      expect((await form('verify', { token })).status).toBe(409)
      expect(registrations.calls).toEqual([])
      entries.pop()
      expect((await form('verify', { token })).status).toBe(410)
    })
  })

  test('D2: a name that appears twice in the body does not choose between two subjects', async () => {
    const { post, registrations } = await open()
    for (const body of [
      '{"attributes":{"uid":"ada"},"attributes":{"uid":"victim"}}',
      '{"attributes":{"uid":"ada","uid":"victim"}}',
    ]) {
      expect(await post(body)).toMatchObject({
        status: 400,
        body: { errors: ['The body has a member that is there twice'] },
      })
    }
    expect(registrations.calls).toEqual([])
  })

  test.each([
    'ada ',
    ' ada',
    'ad\u200ba',
    '\u202eada',
    'a\u2028b',
    'x'.repeat(257),
    '\uff41da',
    // A user with the name of anonymous callers would count as the requester of all their requests.
    'Anonymous',
  ])('%j cannot be a login', async (uid) => {
    const { post, registrations } = await open()
    expect(await post({ attributes: { uid } })).toMatchObject({
      status: 500,
      body: { errors: [unusableLogin] },
    })
    expect(registrations.calls).toEqual([])
  })

  test('a login is unique unless the form says otherwise', async () => {
    const { 'uid.unique': _, ...unsaid } = basic
    const { post } = await open(unsaid)
    expect((await post({ attributes: { uid: 'ALICE' } })).body.errors).toEqual(['Login is not available'])
    expect(parse({ ...basic, 'uid.unique': 'false' }).issues).toEqual([
      expect.stringContaining('warning params.uid.unique'),
    ])
  })

  test('no user can take the name of callers without a login', async () => {
    const { post, registrations } = await open()
    const guest = person('guest', 0)
    expect((await post({ attributes: { uid: 'Guest' } }, guest)).body.errors).toEqual([unusableLogin])
    expect(registrations.calls).toEqual([])
  })

  test('invisible characters or another composition do not make a value unique', async () => {
    const { post, registrations } = await open({ ...basic, 'mail.unique': 'true' })
    for (const mail of ['alice@example.com ', ' alice@example.com', 'alice@example.com\u200b']) {
      expect(await post({ attributes: { uid: 'ada', mail } })).toMatchObject({
        status: 500,
        body: { errors: ['Mail has characters that cannot be used'] },
      })
    }
    expect(registrations.calls).toEqual([])
    const [composed, decomposed] = ['ren\u00e9@example.com', 'rene\u0301@example.com']
    expect((await post({ attributes: { uid: 'rene1', mail: composed } })).status).toBe(200)
    expect((await post({ attributes: { uid: 'rene2', mail: decomposed } })).body.errors).toEqual([
      'Mail is not available',
    ])
    expect(registrations.calls.map(({ user }) => user.attributes.first('mail'))).toEqual([composed])
  })

  test('a value that another registration reserves is not available', async () => {
    const { post } = await open()
    const answers = await Promise.all([post(ada), post({ attributes: { uid: 'ADA' } }), post(ada)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 500, 500])
  })

  test.each([
    ['', 400],
    ['{', 400],
    ['[]', 400],
    ['null', 400],
    ['{}', 400],
    ['{"attributes":[]}', 400],
    ['{"attributes":{"uid":1}}', 400],
    ['{"attributes":{"uid":"ada"},"other":1}', 400],
    ['{"attributes":{"uid":"ada"},"checkedTermsAndConditions":"true"}', 400],
    ['{"attributes":{"uid":"ada"},"reason":7}', 400],
    ['{"attributes":{"uid":"ada","__proto__":"x"}}', 400],
    [`{"attributes":{${Array.from({ length: 201 }, (_, i) => `"a${i}":""`).join(',')}}}`, 400],
    ['{"attributes":{"uid":"ada","constructor":"x"}}', 500],
    ['{"attributes":{"uid":"ada"},"password":"secret"}', 500],
  ])('of the body %j is answered with %i and starts nothing', async (body, status) => {
    const { post, registrations } = await open()
    const answer = await post(body)
    expect(answer).toMatchObject({ status, body: { errors: [expect.any(String)] } })
    expect(registrations.calls).toEqual([])
  })

  test("extra members that OpenUnison's page posts are accepted and ignored", async () => {
    const { post, registrations } = await open()
    expect((await post({ ...ada, password: '', password2: '', extraData: { a: 1 }, enabledAttrs: [] })).status).toBe(
      200,
    )
    expect(registrations.calls).toHaveLength(1)
  })

  test('D12: other content types and methods are rejected', async () => {
    const { post, send, registrations } = await open()
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/jsonp',
    ]) {
      expect(await post(ada, boss, { 'content-type': type })).toMatchObject({
        status: 415,
        body: { errors: [expect.any(String)] },
      })
    }
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      expect(await send('submit', { method, body: JSON.stringify(ada) })).toMatchObject({
        status: 405,
        headers: { allow: 'POST' },
      })
    }
    expect(await send('config', { method: 'POST' })).toMatchObject({ status: 405 })
    expect(await send('nothing')).toMatchObject({ status: 404 })
    expect(registrations.calls).toEqual([])
  })

  test('every body gets an answer of the description', async () => {
    const { post, registrations } = await open()
    const word = fc.constantFrom('uid', 'mail', 'team', 'attributes', 'reason', '__proto__', 'invitation', 'x')
    const value = fc.oneof(fc.string({ unit: 'binary' }), fc.constant('ada'), fc.constant(null), fc.integer())
    await fc.assert(
      fc.asyncProperty(fc.dictionary(word, value), fc.dictionary(word, value), async (attributes, more) => {
        registrations.calls.length = 0
        const { status, body } = await post({ ...more, attributes })
        expect([200, 400, 500]).toContain(status)
        if (status !== 200) expect(body.errors.length).toBeGreaterThan(0)
        for (const { user } of registrations.calls) {
          expect(user.attributes.names().every((name) => basic.attributeNames.includes(name))).toBe(true)
        }
      }),
    )
  })
})

describe('passwords', () => {
  const params = { ...basic, preSetPassword: 'true' }

  test('reach the workflow and nothing else', async () => {
    const { post, registrations } = await open(params)
    const answer = await post({ ...ada, password: 'correct horse', password2: 'correct horse' })
    expect(answer.status).toBe(200)
    expect(registrations.calls[0]?.password).toBe('correct horse')
    expect(JSON.stringify([answer, registrations.calls[0]?.user.attributes.toObject()])).not.toContain('horse')
  })

  test.each([
    [{}, 'Password is required'],
    [{ password: 'correct horse' }, 'Passwords must match'],
    [{ password: 'short', password2: 'short' }, 'Password must have at least 8 characters'],
    [{ password: 'x'.repeat(129), password2: 'x'.repeat(129) }, 'Password must have at most 128 characters'],
    [{ password: 'ada@example.com', password2: 'ada@example.com' }, 'Password must not be made of the other values'],
  ])('%j: %s', async (given, error) => {
    const { post, registrations } = await open(params)
    expect((await post({ ...ada, ...given })).body.errors).toEqual([error])
    expect(registrations.calls).toEqual([])
  })
})

describe('the configuration of the form', () => {
  test('describes its fields for approvers', () => {
    expect(parse(basic).prepared).toMatchObject({
      form: {
        workflow: 'join',
        fields: [{ name: 'uid', label: 'Login' }, {}, { name: 'team', items: [{ name: 'Blue', value: 'blue' }, {}] }],
      },
    })
  })

  test('shows its texts in the language of the caller: those of the configuration, and the defaults', async () => {
    const german = new Map([
      ['Join', 'Beitreten'],
      ['Team', 'Mannschaft'],
      ['Blue', 'Blau'],
      ['Because', 'Weil'],
    ])
    const params = { ...basic, reasonIsList: 'true', reasons: ['Because'] }
    const { send, post } = await open(params, { texts: new Map([['de', german]]), runs: new MemoryRuns() })
    const { body, headers } = await send('config', { headers: { 'accept-language': 'de' } })
    expect(headers['vary']).toBe('accept-language')
    expect(body).toMatchObject({
      frontPage: { title: 'Beitreten', text: 'Come in' },
      reasons: ['Weil'],
      submitButtonText: 'Registrierung absenden',
      submittedText: 'Vielen Dank für Ihre Registrierung. Sie hören von uns.',
      attributes: [{}, {}, { displayName: 'Mannschaft', values: [{ name: 'Blau', value: 'blue' }, { name: 'Red' }] }],
    })
    expect((await post({ attributes: { uid: 'carol' }, reason: 'Weil' })).status).toBe(200)
    const own = await open({ ...basic, submitButtonText: 'Go' })
    const french = await own.send('config', { headers: { 'accept-language': 'fr' } })
    expect(french.body).toMatchObject({ submitButtonText: 'Go', frontPage: { title: 'Join' } })
  })

  test('D24: shows what a page needs, and no settings of the server', async () => {
    const { send } = await open({
      ...verified,
      requireReCaptcha: 'true',
      rcSiteKey: 'public-key',
      rcSecret: 'very-secret',
      'uid.regEx': '[a-z]+',
    })
    const { status, body } = await send('config')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      frontPage: { title: 'Join', text: 'Come in' },
      attributeNameList: ['uid', 'mail', 'team'],
      requireReCaptcha: true,
      rcSiteKey: 'public-key',
      verifyEmailAttribute: 'mail',
    })
    expect(body.attributes[2]).toMatchObject({
      name: 'team',
      values: [
        { name: 'Blue', value: 'blue', num: 0 },
        { name: 'Red', value: 'red', num: 1 },
      ],
    })
    expect(JSON.stringify(body)).not.toMatch(/very-secret|workflow|publicURL/)
  })

  test('is the same under a mount above /register', async () => {
    const { send } = await open()
    expect((await send('register/config')).status).toBe(200)
    expect((await send('config', { method: 'HEAD' })).status).toBe(200)
  })

  test('explain and check do not print secrets', () => {
    const { prepared } = parse({ ...basic, requireReCaptcha: 'true', rcSiteKey: 'p', rcSecret: 'very-secret' })
    expect(JSON.stringify(prepared.summary)).not.toContain('very-secret')
    expect(descriptionOf(register.parameters['rcSecret'] ?? text({ about: '' })).secret).toBe(true)
  })

  test.each([
    [{ uidAttributeName: 'login' }, 'has no field "login"'],
    [{ reasonIsList: 'true' }, 'parameter "reasons" is required'],
    [{ requireTermsAndConditions: 'true' }, 'parameter "termsAndConditionsText" is required'],
    [{ useCallWorkflowClass: 'true' }, 'no handler named ""; there are K8sProjectCheck, JavaScriptRegister'],
    [{ workflowName: '' }, 'parameter "workflowName" is required unless useCallWorkflowClass is "true"'],
    [{ requireReCaptcha: 'true', rcSiteKey: 'x' }, 'parameter "rcSecret" is required'],
    [{ humanCheck: 'none', requireReCaptcha: 'true' }, 'but "requireReCaptcha" is "true"'],
    [{ verifyEmail: 'true' }, 'parameter "publicURL" is required'],
    [{ verifyEmail: 'true', publicURL: 'ftp://x' }, 'must be an http or https address'],
    [{ verifyEmail: 'true', publicURL: origin, emailAttribute: 'email' }, 'has no field "email"'],
    [{ honeypotField: 'attributes' }, 'cannot be the name of a further member'],
    [{ honeypotField: '__proto__' }, 'cannot be the name of a further member'],
    [{ hideExisting: 'true' }, '"hideExisting" requires "verifyEmail"'],
    [{ requireInvitation: 'true' }, 'parameter "invitationURL" is required'],
    [{ inviterRule: ['boss'], invitationURL: origin }, 'must be "scope;constraint"'],
    [{ verificationText: 'no link' }, 'needs a place for "$link$"'],
    [{ verificationText: '$link$ $password$' }, 'has a place for "$password$"'],
    [{ themePrimaryMain: 'red;}' }, 'must be #rgb'],
    [{ rcMinScore: '2' }, 'must be a number from 0 to 1'],
    [{ 'team.dynamicValueSource.className': 'sources.Nothing' }, 'no value source named'],
  ])('%j is a mistake', (more, text) => {
    expect(parse({ ...basic, ...more } as ParamValues).issues.join('\n')).toContain(text)
  })

  test('D18: scripts of the configuration are reported as not run, and are not sent', async () => {
    const params = { ...basic, jsUris: ['/x.js'], 'uid.editJavaScriptFunction': 'alert(1)' }
    expect(parse(params).issues).toEqual([
      expect.stringContaining('warning params.jsUris'),
      expect.stringContaining('warning params.uid.editJavaScriptFunction'),
    ])
    expect(JSON.stringify((await (await open(params)).send('config')).body)).not.toMatch(/alert|x\.js/)
  })

  test("configFormat: openunison gives OpenUnison's page the form that it reads, and nothing secret", async () => {
    const params = {
      ...basic,
      configFormat: 'openunison',
      jsUris: ['/x.js'],
      'uid.editJavaScriptFunction': 'check()',
      'mail.type': 'textarea',
      rcSecret: 'not for pages',
      displayNameAttribute: 'cn',
    }
    expect(parse(params).issues).toEqual([])
    const { send } = await open(params)
    const { body } = await send('config')
    expect(Object.keys(body.attributes)).toEqual(body.attributeNameList)
    expect(body).toMatchObject({
      jsUris: ['/x.js'],
      displayNameAttribute: 'cn',
      reasons: [],
      attributes: {
        uid: { name: 'uid', displayName: 'Login', show: true, type: 'text', editJavaScriptFunction: 'check()' },
        mail: { type: 'textarea', values: [] },
        team: { type: 'list', values: [{ name: 'Blue', value: 'blue' }, { name: 'Red' }] },
      },
    })
    expect(JSON.stringify(body)).not.toMatch(/not for pages|"join"|workflow/)
    const both = { ...params, 'mail.type': 'text-area', 'uid.type': 'chk-text-list-box' }
    const { attributes } = (await (await open(both)).send('config')).body
    expect([attributes.mail.type, attributes.uid.type]).toEqual(['textarea', 'chk-text-list-box'])
  })
})

/** The fields of the specification, section 2.1, each by its value or its effect. */
describe('by the specification', () => {
  const all = {
    ...basic,
    attributeNames: ['uid', 'mail', 'team', 'note'],
    'uid.regEx': '[a-z]+',
    'uid.minChars': '2',
    'uid.maxChars': '9',
    'mail.readOnly': 'true',
    'mail.default': 'all@example.com',
    'mail.unique': 'true',
    'note.displayName': 'Note',
    'note.type': 'text-area',
    'note.show': 'false',
    'note.required': 'false',
    requireReason: 'true',
    preSetPassword: 'true',
    requireReCaptcha: 'true',
    rcSiteKey: 'public-key',
    rcSecret: 'very-secret',
    requireTermsAndConditions: 'true',
    termsAndConditionsText: 'Be nice',
    reasonIsList: 'true',
    reasons: ['work', 'study'],
    submitButtonText: 'Go',
    submittedText: 'We write to you',
  }
  const flags = ['requireReason', 'preSetPassword', 'requireReCaptcha', 'requireTermsAndConditions', 'reasonIsList']
  const errorsOf = async (params: ParamValues, body: object = ada): Promise<string[]> => {
    const { status, body: answered } = await (await open(params)).post(body)
    expect(status).toBe(answered.errors === undefined ? 200 : 500)
    return answered.errors ?? []
  }

  test('every field of Config and of its attributes has the configured value', async () => {
    const { body } = await (await open(all)).send('config')
    expect(body).toMatchObject({
      frontPage: { title: 'Join', text: 'Come in' },
      homeURL: '/home',
      logoutURL: '/logout',
      attributeNameList: ['uid', 'mail', 'team', 'note'],
      ...Object.fromEntries(flags.map((name) => [name, true])),
      reasons: ['work', 'study'],
      submitButtonText: 'Go',
      submittedText: 'We write to you',
    })
    const plain = { readOnly: false, unique: false, show: true, type: 'text', values: [] }
    expect(body.attributes).toMatchObject([
      {
        ...{ ...plain, name: 'uid', displayName: 'Login', required: true, unique: true },
        ...{ regEx: '[a-z]+', minChars: 2, maxChars: 9 },
      },
      { ...plain, name: 'mail', displayName: 'Mail', required: false, readOnly: true, unique: true },
      {
        ...{ ...plain, name: 'team', displayName: 'Team', required: false, type: 'list' },
        values: [
          { name: 'Blue', value: 'blue', num: 0 },
          { name: 'Red', value: 'red', num: 1 },
        ],
      },
      { ...plain, name: 'note', displayName: 'Note', required: false, type: 'text-area', show: false },
    ])
    const { body: without } = await (await open()).send('config')
    expect(without).toMatchObject({ ...Object.fromEntries(flags.map((name) => [name, false])), reasons: [] })
  })

  test('requireReason: a registration without a reason is refused', async () => {
    const params = { ...basic, requireReason: 'true' }
    expect(await errorsOf(params)).toEqual(['Reason is required'])
    expect(await errorsOf(params, { ...ada, reason: 'new here' })).toEqual([])
    expect(await errorsOf(basic)).toEqual([])
  })

  test('reasonIsList: only the listed reasons are accepted; otherwise any is', async () => {
    const params = { ...basic, reasonIsList: 'true', reasons: ['work', 'study'] }
    for (const reason of ['work', 'study']) expect(await errorsOf(params, { ...ada, reason })).toEqual([])
    expect(await errorsOf(params, { ...ada, reason: 'fun' })).toEqual(['Reason is not in the list'])
    expect(await errorsOf(basic, { ...ada, reason: 'fun' })).toEqual([])
  })

  test('preSetPassword: a registration has a password; otherwise none is accepted', async () => {
    const params = { ...basic, preSetPassword: 'true' }
    const password = { password: 'correct horse', password2: 'correct horse' }
    expect(await errorsOf(params)).toEqual(['Password is required'])
    expect(await errorsOf(params, { ...ada, ...password })).toEqual([])
    expect(await errorsOf(basic, { ...ada, ...password })).toEqual(['This form does not accept a password'])
  })

  test('requireReCaptcha: a registration without a solved CAPTCHA is refused', async () => {
    const verifier = createServer(async (request, response) => {
      const given = new URLSearchParams(Buffer.concat(await request.toArray()).toString())
      const success = given.get('secret') === 'very-secret' && given.get('response') === 'solved'
      response.end(JSON.stringify({ success, hostname: new URL(origin).hostname, challenge_ts: new Date() }))
    })
    await once(verifier.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void verifier.close())
    const rcVerifyURL = `http://127.0.0.1:${(verifier.address() as AddressInfo).port}/`
    const keys = { rcSiteKey: 'public-key', rcSecret: 'very-secret', rcVerifyURL }
    const params = { ...basic, requireReCaptcha: 'true', ...keys }
    expect(await errorsOf(params)).toEqual(['Please verify you are not a robot'])
    expect(await errorsOf(params, { ...ada, reCaptchaCode: 'guessed' })).toEqual(['Human validation failed'])
    expect(await errorsOf(params, { ...ada, reCaptchaCode: 'solved' })).toEqual([])
    expect(await errorsOf(basic)).toEqual([])
    for (const humanCheck of ['turnstile', 'recaptcha-v3']) {
      const { body } = await (await open({ ...basic, humanCheck, ...keys })).send('config')
      expect([humanCheck, body.requireReCaptcha]).toEqual([humanCheck, true])
    }
  })

  test('requireTermsAndConditions: a registration without the accepted terms is refused', async () => {
    const params = { ...basic, requireTermsAndConditions: 'true', termsAndConditionsText: 'Be nice' }
    const refused = ['Please accept the terms and conditions']
    expect(await errorsOf(params)).toEqual(refused)
    expect(await errorsOf(params, { ...ada, checkedTermsAndConditions: false })).toEqual(refused)
    expect(await errorsOf(params, { ...ada, checkedTermsAndConditions: true })).toEqual([])
  })

  test('submittedText: is shown when the mail address is confirmed', async () => {
    const { post, form, registrations } = await open({ ...verified, submittedText: 'We write to you' })
    await post(ada)
    const page = await form('verify', { token: registrations.mails[0]?.secret ?? '' })
    expect([page.status, page.body]).toEqual([200, expect.stringContaining('We write to you')])
  })

  test('unique: a value that a user of the datastore has is refused; otherwise it is accepted', async () => {
    const taken = { attributes: { uid: 'ada', mail: 'ALICE@example.com' } }
    expect(await errorsOf({ ...basic, 'mail.unique': 'true' }, taken)).toEqual(['Mail is not available'])
    expect(await errorsOf(basic, taken)).toEqual([])
  })
})

test('the lengths of a field are in its description when they are configured', async () => {
  const fieldOf = async (params: ParamValues) => (await (await open(params)).send('config')).body.attributes[0]
  const plain = await fieldOf(basic)
  expect([Object.hasOwn(plain, 'minChars'), Object.hasOwn(plain, 'maxChars')]).toEqual([false, false])
  const name = plain.name
  expect(await fieldOf({ ...basic, [`${name}.minChars`]: '2', [`${name}.maxChars`]: '9' })).toMatchObject({
    minChars: 2,
    maxChars: 9,
  })
})

describe('values', () => {
  const people = {
    ...basic,
    attributeNames: ['uid', 'team', 'manager', 'place', 'hidden'],
    'manager.displayName': 'Manager',
    'manager.type': 'text-list',
    'manager.required': 'false',
    'manager.dynamicValueSource.className': 'com.tremolosecurity.scalejs.register.dynamicSource.LoadFromLDAP',
    'manager.dynamicValueSource.config': [
      'searchBase=o=Tremolo',
      'objectClass=person',
      'nameField=uid',
      'valueField=mail',
      'errorMessage=nobody has this address',
      'maxEntries=5',
    ],
    'place.displayName': 'Place',
    'place.values': ['Here=1'],
    'place.required': 'false',
    'hidden.displayName': 'Hidden',
    'hidden.values': ['Secret=s'],
    'hidden.show': 'false',
    'hidden.required': 'false',
  }
  const withoutMail = Object.fromEntries(
    Object.entries(people).filter(([name]) => !name.startsWith('mail.')),
  ) as ParamValues

  test('returns one field, and all of them', async () => {
    const { send } = await open(withoutMail)
    expect((await send('values?name=team')).body).toEqual([
      { name: 'Blue', value: 'blue', num: 0 },
      { name: 'Red', value: 'red', num: 1 },
    ])
    expect((await send('values?name=team&search=RE')).body).toEqual([{ name: 'Red', value: 'red', num: 0 }])
    const names = async (query: string) => (await send(query)).body.map((item: { name: string }) => item.name)
    expect(await names('values')).toEqual(['Blue', 'Red', 'alice', 'Here'])
    expect((await send('values?search=al')).body).toEqual([{ name: 'alice', value: 'alice@example.com', num: 0 }])
  })

  test.each(['uid', 'nothing', 'hidden', '__proto__', 'constructor'])('has no list of %s', async (name) => {
    const { send } = await open(withoutMail)
    expect(await send(`values?name=${name}`)).toMatchObject({
      status: 400,
      body: { errors: ['There is no list of that name.'] },
    })
  })

  test('D16: a directory is searched by whole words only, and only for the attributes that are shown', async () => {
    const { send, host } = await open(withoutMail)
    for (const search of ['a%00b', 'x'.repeat(101)]) {
      expect((await send(`values?name=manager&search=${search}`)).body).toEqual([])
    }
    expect(host.searches).toEqual([])
    await send('values?name=manager&search=*)(uid=*')
    expect(host.searches).toMatchObject([
      {
        limit: 5,
        attributes: ['uid', 'mail'],
        filter: { filters: [{ value: 'person' }, { kind: 'substring', attribute: 'uid', any: ['*)(uid=*'] }] },
      },
    ])
    expect((await send('values?name=team&name=manager')).status).toBe(400)
  })

  const alice = { name: 'alice', value: 'alice@example.com', num: 0 }

  test.each(['text-list', 'list'])('a dynamic %s can be searched with one character, and without any', async (type) => {
    const { send } = await open({ ...withoutMail, 'manager.type': type })
    for (const query of ['', '&search=', '&search=a', '&search=%20a%20', '&search=LIC']) {
      expect([query, (await send(`values?name=manager${query}`)).body]).toEqual([query, [alice]])
    }
    expect((await send('values?name=manager&search=z')).body).toEqual([])
    const { attributes } = (await send('config')).body
    const shown = attributes.find(({ name }: { name: string }) => name === 'manager').values
    expect(shown).toEqual(type === 'list' ? [alice] : [])
  })

  test('D16: with minSearchChars a text-list needs as many characters, and a shorter search says so', async () => {
    const { send, host } = await open({ ...withoutMail, minSearchChars: '3' })
    for (const search of ['', 'a', 'al%20', '%20%20%20']) {
      expect(await send(`values?name=manager&search=${search}`)).toMatchObject({
        status: 400,
        body: { errors: ['search: this list needs at least 3 characters. Send more of the value.'] },
      })
    }
    expect((await send('values')).body.map(({ name }: { name: string }) => name)).toEqual(['Blue', 'Red', 'Here'])
    expect(host.searches).toEqual([])
    expect((await send('values?name=manager&search=ali')).body).toEqual([alice])
  })

  test('a value that the source does not have is rejected with its message', async () => {
    const { post } = await open(withoutMail)
    expect((await post({ attributes: { uid: 'ada', manager: 'x@y' } })).body.errors).toEqual([
      'Manager - nobody has this address',
    ])
    expect((await post({ attributes: { uid: 'ada', manager: 'alice@example.com' } })).status).toBe(200)
  })
})

describe('limits', () => {
  test('D15: limit registrations per address and per value', async () => {
    let now = 0
    const { post } = await open({ ...basic, submitsPerMinute: '3' }, { now: () => now })
    const answers = []
    for (const uid of ['a', 'b', 'c', 'd']) answers.push((await post({ attributes: { uid } })).status)
    expect(answers).toEqual([200, 200, 200, 429])
    now += 60_000
    expect((await post({ attributes: { uid: 'e' } })).status).toBe(200)
    const byValue = await open({ ...basic, submitsPerValuePerHour: '2' })
    const tries = []
    for (let i = 0; i < 3; i++)
      tries.push((await byValue.post({ attributes: { uid: i === 1 ? 'ALICE' : 'alice' } })).status)
    expect(tries).toEqual([500, 500, 429])
  })

  test('count each outcome by form', async () => {
    const { post, registrations } = await open({ ...basic, submitsPerMinute: '3', honeypotField: 'website' })
    await post(ada)
    await post({ attributes: { uid: 'alice' } })
    await post({ ...ada, website: 'https://bot.example' })
    await post(ada)
    const events = registrations.events.map((event) => event.split(': ')[1])
    expect(events).toEqual(['started', 'refused', 'not-human', 'limited'])
    expect(new Set(registrations.events.map((event) => event.split(': ')[0])).size).toBe(1)
    expect(registrations.events[0]).toMatch(/ join: started$/)
    const mailing = await open(verified)
    await mailing.post(ada)
    await mailing.form('verify', { token: mailing.registrations.mails[0]?.secret ?? '' })
    await mailing.form('verify', { token: 'x' })
    expect(mailing.registrations.events.map((event) => event.split(': ')[1])).toEqual([
      'mailed',
      'confirmed',
      'unknown-link',
    ])
  })

  test('D16: apply to searches too', async () => {
    const { send } = await open({ ...basic, readsPerMinute: '2' }, { now: () => 0 })
    expect([(await send('values')).status, (await send('config')).status, (await send('values')).status]).toEqual([
      200, 200, 429,
    ])
  })
})

describe('a mail address that has to be confirmed', () => {
  test('starts nothing before it is confirmed, by the button and once', async () => {
    const { post, send, form, registrations } = await open(verified)
    const answer = await post({ ...ada, reason: 'why' })
    expect(answer.body).toMatchObject({ addNewUsers: false, verificationSent: true, workflowId: expect.any(String) })
    expect(registrations.calls).toEqual([])
    const [mail] = registrations.mails
    expect(mail).toMatchObject({ recipient: 'ada@example.com', subject: 'Confirm your registration' })
    expect(mail?.text).toContain(`${origin}/register/verify?token=${mail?.secret}`)

    const page = await send(`verify?token=${mail?.secret}`)
    expect(page.status).toBe(200)
    expect(page.body).toContain('<button')
    expect(page.body).not.toContain('<script')
    expect(String(page.headers['content-security-policy'])).not.toContain('unsafe')
    expect(registrations.calls).toEqual([])

    const token = mail?.secret ?? ''
    expect((await form('verify', { token }, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await form('verify', { token }, { origin: 'https://evil.example' })).status).toBe(403)
    expect(registrations.calls).toEqual([])
    expect((await form('verify', { token }, { 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    expect(registrations.calls).toMatchObject([{ head: { workflow: 'join', reason: 'why' }, user: { userID: 'ada' } }])
    expect((await form('verify', { token })).status).toBe(410)
    expect((await send(`verify?token=${token}`)).status).toBe(410)
    expect(registrations.calls).toHaveLength(1)
  })

  test('gets a mail in the language of the form, unless a text is configured', async () => {
    const german = { 'accept-language': 'de' }
    const { post, registrations } = await open({ ...verified, hideExisting: 'true' })
    await post(ada, anonymous, german)
    await post({ attributes: { uid: 'alice', mail: 'alice@example.com' } }, anonymous, german)
    const [mail, taken] = registrations.mails
    expect(mail).toMatchObject({
      subject: 'Bestätigen Sie Ihre Registrierung',
      text: expect.stringContaining('Öffnen'),
    })
    expect(taken).toMatchObject({ subject: mail?.subject, text: expect.stringContaining('gibt es bereits') })
    const texts = { verificationSubject: 'Please confirm', verificationText: '$title$: $link$' }
    const configured = await open({ ...verified, ...texts })
    await configured.post(ada, anonymous, german)
    expect(configured.registrations.mails[0]).toMatchObject({ subject: 'Please confirm' })
    expect(configured.registrations.mails[0]?.text).toContain(': https://')
  })

  test('must be valid', async () => {
    const { post, registrations } = await open(verified)
    for (const mail of ['ada', 'a@b, c@d', 'a@b\r\nBcc: x@y', '<a@b>']) {
      expect((await post({ attributes: { uid: 'ada', mail } })).status).toBe(500)
    }
    expect(registrations.mails).toEqual([])
    expect((await post({ attributes: { uid: 'ada' } })).body.errors).toEqual(['Mail is required'])
  })

  test.each(['', 'x', 'x'.repeat(300), '"><script>'])('the token %j is worthless', async (token) => {
    const { send, form } = await open(verified)
    const shown = await send(`verify?token=${encodeURIComponent(token)}`)
    expect(shown.status).toBe(410)
    expect(shown.body).not.toContain('<script>')
    expect((await form('verify', { token })).status).toBe(410)
  })

  test('of two users who confirm the same login, the first gets it', async () => {
    const { post, form, registrations } = await open(verified)
    await post(ada)
    await post({ attributes: { uid: 'ada', mail: 'other@example.com' } })
    const [first, second] = registrations.mails
    expect((await form('verify', { token: second?.secret ?? '' })).status).toBe(200)
    expect((await form('verify', { token: first?.secret ?? '' })).status).toBe(409)
    expect(registrations.calls).toHaveLength(1)
  })

  test('D15: reports only by mail whether a value is taken, if configured', async () => {
    const { post, send, registrations } = await open({ ...verified, hideExisting: 'true' })
    const fresh = await post(ada)
    const taken = await post({ attributes: { uid: 'alice', mail: 'alice@example.com' } })
    expect({ ...taken.body, workflowId: '' }).toEqual({ ...fresh.body, workflowId: '' })
    expect(taken.status).toBe(fresh.status)
    const [, mail] = registrations.mails
    expect(mail).toMatchObject({ recipient: 'alice@example.com', subject: 'Confirm your registration' })
    expect(mail?.text).not.toContain(mail?.secret)
    expect((await send(`verify?token=${mail?.secret}`)).status).toBe(410)
    expect(registrations.calls).toEqual([])
  })
})

describe('invitations', () => {
  const invite = (body: unknown) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

  test('are created by users that may invite, and used once', async () => {
    const { send, post, registrations } = await open({ ...invited, requireInvitation: 'true' })
    expect((await post(ada)).body.errors).toEqual(['An invitation is required'])
    expect((await post({ ...ada, invitation: 'guess' })).body.errors).toEqual(['The invitation is not valid'])
    const made = await send('invitations', invite({ email: 'ada@example.com', attributes: { team: 'red' } }), boss)
    expect(made).toMatchObject({
      status: 201,
      body: { email: 'ada@example.com', state: 'open', invitedBy: 'boss', sent: 1 },
    })
    const [mail] = registrations.mails
    expect(mail?.text).toContain(`${origin}/join?lang=en&invitation=${mail?.secret}`)
    const invitation = mail?.secret ?? ''
    expect((await send(`invitation?token=${invitation}`)).body).toMatchObject({
      email: 'ada@example.com',
      attributes: { team: 'red' },
    })
    expect((await post({ attributes: { uid: 'ada', mail: 'evil@example.com' }, invitation })).body.errors).toEqual([
      'Mail cannot be changed',
    ])
    expect((await post({ attributes: { uid: 'ada', team: 'blue' }, invitation })).body.errors).toEqual([
      'Team cannot be changed',
    ])
    expect((await post({ attributes: { uid: 'ada' }, invitation })).status).toBe(200)
    expect(registrations.calls[0]?.user.attributes.toObject()).toEqual({
      uid: ['ada'],
      mail: ['ada@example.com'],
      team: ['red'],
    })
    expect((await post({ attributes: { uid: 'bob' }, invitation })).body.errors).toEqual([
      'The invitation is not valid',
    ])
    expect((await send(`invitation?token=${invitation}`)).status).toBe(404)
  })

  test('are in the language of the user who invites', async () => {
    const { send, registrations } = await open({ ...invited, requireInvitation: 'true' })
    const { headers, ...request } = invite({ email: 'ada@example.com' })
    const german = { ...request, headers: { ...headers, 'accept-language': 'de' } }
    expect((await send('invitations', german, boss)).status).toBe(201)
    expect(registrations.mails[0]).toMatchObject({ subject: 'Sie sind eingeladen' })
  })

  test('need no confirmation of the mail address', async () => {
    const { send, post, registrations } = await open({ ...verified, ...invited, ...{ verifyEmail: 'true' } })
    await send('invitations', invite({ email: 'ada@example.com' }), boss)
    const invitation = registrations.mails[0]?.secret
    expect((await post({ attributes: { uid: 'ada' }, invitation })).body).not.toHaveProperty('verificationSent')
    expect(registrations.calls).toHaveLength(1)
  })

  test('are hidden from other users', async () => {
    const { send, registrations } = await open(invited)
    for (const subject of [anonymous, person('mallory', 20)]) {
      expect((await send('invitations', {}, subject)).status).toBe(403)
      expect((await send('invitations', invite({ email: 'a@b.example' }), subject)).status).toBe(403)
      expect((await send(`invitations/${crypto.randomUUID()}`, { method: 'DELETE' }, subject)).status).toBe(403)
    }
    expect(registrations.mails).toEqual([])
  })

  test('are listed, sent again and revoked', async () => {
    const { send, post, registrations } = await open(invited)
    const { body } = await send('invitations', invite({ email: 'ada@example.com' }), boss)
    expect((await send('invitations', {}, boss)).body.invitations).toMatchObject([{ id: body.id, state: 'open' }])
    expect((await send(`invitations/${body.id}/resend`, { method: 'POST' }, boss)).body.sent).toBe(2)
    const [first, second] = registrations.mails.map(({ secret }) => secret)
    expect((await post({ attributes: { uid: 'ada' }, invitation: first })).status).toBe(500)
    expect((await send(`invitations/${body.id}`, { method: 'DELETE' }, boss)).body.state).toBe('revoked')
    expect((await post({ attributes: { uid: 'ada' }, invitation: second })).status).toBe(500)
    expect((await send(`invitations/${body.id}`, { method: 'DELETE' }, boss)).status).toBe(409)
    for (const path of ['x', `${body.id}/x`, `${body.id}/resend/x`, crypto.randomUUID()]) {
      expect((await send(`invitations/${path}`, { method: 'DELETE' }, boss)).status).not.toBe(200)
    }
  })

  test.each([
    [{ email: 'nobody' }, '/email'],
    [{ email: 'a@b.example', attributes: { groups: 'admins' } }, '/attributes/groups'],
    [{ email: 'a@b.example', attributes: { team: 'green' } }, '/attributes/team'],
    [{ email: 'a@b.example', attributes: { mail: 'c@d.example' } }, '/attributes/mail'],
    [{ email: 'a@b.example', role: 'x' }, '/role'],
  ])('%j is rejected', async (body, pointer) => {
    const { send, registrations } = await open(invited)
    const answer = await send('invitations', invite(body), boss)
    expect(answer).toMatchObject({ status: 400, body: { errors: [expect.stringContaining(pointer)] } })
    expect(registrations.mails).toEqual([])
  })
})

describe('human checks', () => {
  const solve = (challenge: string, difficulty: number): string => {
    for (let nonce = 0; ; nonce++) {
      const code = `${challenge}.${nonce}`
      if (leadingZeroBits(hash('sha256', code, 'buffer')) >= difficulty) return code
    }
  }

  test('a proof of work counts once', async () => {
    const { send, post, registrations } = await open({ ...basic, humanCheck: 'proof-of-work', proofOfWorkBits: '8' })
    expect((await send('config')).body).toMatchObject({
      requireReCaptcha: false,
      humanCheck: { kind: 'proof-of-work' },
    })
    const { body } = await send('challenge')
    const reCaptchaCode = solve(body.challenge, body.difficulty)
    expect((await post(ada)).body.errors).toEqual(['Please verify you are not a robot'])
    expect((await post({ ...ada, reCaptchaCode })).status).toBe(200)
    expect((await post({ attributes: { uid: 'bob' }, reCaptchaCode })).body.errors).toEqual(['Human validation failed'])
    expect(registrations.calls).toHaveLength(1)
  })

  test('a proof of work that is too old, forged or not solved is invalid', async () => {
    let now = Date.UTC(2030, 0, 1)
    const { send, post } = await open(
      { ...basic, humanCheck: 'proof-of-work', proofOfWorkBits: '12' },
      { now: () => now },
    )
    const { challenge, difficulty } = (await send('challenge')).body
    const solved = solve(challenge, difficulty)
    const parts = solved.split('.')
    const easier = solve([parts[0], '1', parts[2], parts[3]].join('.'), 1)
    const unsolved = Array.from({ length: 50 }, (_, i) => `${challenge}.${i}x`).find(
      (code) => leadingZeroBits(hash('sha256', code, 'buffer')) < difficulty,
    )
    for (const reCaptchaCode of [easier, unsolved, challenge, 'x', '....', `${solved}.1`]) {
      expect((await post({ ...ada, reCaptchaCode })).body.errors).toEqual(['Human validation failed'])
    }
    now += 11 * 60_000
    expect((await post({ ...ada, reCaptchaCode: solved })).body.errors).toEqual(['Human validation failed'])
  })

  test('D15: only a caller who passed the check learns that a value is taken', async () => {
    const { post } = await open({ ...basic, humanCheck: 'proof-of-work' })
    expect((await post({ attributes: { uid: 'alice' }, reCaptchaCode: 'x' })).body.errors).toEqual([
      'Human validation failed',
    ])
  })

  test('a honeypot catches clients that fill in every field', async () => {
    const { send, post, registrations } = await open({ ...basic, honeypotField: 'website' })
    expect((await send('config')).body.humanCheck).toEqual({ kind: 'none', honeypot: 'website' })
    expect((await post({ ...ada, website: 'http://spam' })).body.errors).toEqual(['Human validation failed'])
    expect(registrations.calls).toEqual([])
    expect((await post({ ...ada, website: '' })).status).toBe(200)
  })

  test('there is no task if none is configured', async () => {
    expect((await (await open()).send('challenge')).status).toBe(404)
  })
})

test('the filter declares the attributes it produces and the workflow it starts', () => {
  const { prepared } = parse(basic)
  expect(prepared.flow).toMatchObject({ workflows: ['join'], given: ['uid'] })
  expect(prepared.takesForms).toBe(true)
  expect(prepared.summary).toContainEqual({ label: 'workflow', value: 'join' })
})
