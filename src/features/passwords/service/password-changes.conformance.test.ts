import { expect, onTestFinished, test } from 'vitest'
import { insertIdentity, VirtualDirectory } from '#directory/virtual-directory.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { Identity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { LoginAudit, noLoginMeter } from '#requests/login/login-audit.ts'
import type { DirectoryInsert } from '#sdk/directory/directory-insert.ts'
import { openStorage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { settleAbandoned } from './password-audit.ts'
import type { ResetRequest } from './password-changes.ts'
import { PasswordChanges } from './password-changes.ts'
import type { PasswordWriter } from './password-writer.ts'

const suffix = Dn.parse('ou=people,o=Tremolo')
const ada = {
  id: '1',
  dn: suffix.child('uid', 'ada'),
  attributes: Attributes.from({ objectClass: ['person'], uid: ['ada'], mail: ['ada@corp.test'] }),
}
const owner = insertIdentity('people', ada)
const request = { id: 'request', remoteAddress: '192.0.2.1', headers: {} }
const unanswered = () => new GatewayError('TARGET_UNREACHABLE', 'no answer')

onEachDatabase('passwords that users set themselves', (freshUrl) => {
  async function open(owners: readonly Identity[] = [owner]) {
    const storage = openStorage({ url: await freshUrl(), clock: systemClock, log: silentLogger })
    onTestFinished(() => storage.close())
    await storage.ready()
    let failure: GatewayError | undefined
    let entry: typeof ada = ada
    const insert: DirectoryInsert = {
      search: async ({ filter }) => ({ entries: matches(filter, entry.attributes) ? [entry] : [] }),
      isMember: async () => false,
      members: async () => [],
      bind: async (_dn, password) => password === 'current',
      setEntryPassword: async () => {
        if (failure !== undefined) throw failure
      },
    }
    const target = new MemoryTarget()
    const directory = new VirtualDirectory([{ name: 'people', suffix, insert }])
    const { audit, rateLimits } = storage
    const common = { clock: systemClock, log: silentLogger, audit, rateLimits }
    const passwords = new PasswordChanges({
      services: {
        ...common,
        passwordChanges: storage.passwordChanges,
        notifications: storage.notifications,
        loginFailures: storage.loginFailures,
        loginAudit: new LoginAudit(common),
        loginMeter: noLoginMeter,
      },
      configuration: { directoryRoot: Dn.parse('o=Tremolo'), chains: new Map() },
      directory,
      targets: { get: () => target, ownersOf: async () => owners },
    })
    await storage.sessions.create({
      id: 'session',
      publicId: 'public',
      context: 'c',
      application: 'portal',
      owner,
      userID: 'ada',
      data: {},
      created: new Date(),
      touched: new Date(),
      idleSeconds: 600,
    })
    const writer = (name?: string): PasswordWriter => ({
      target: name,
      loginAttribute: 'uid',
      mailAttribute: 'mail',
      confirmation: () => undefined,
      check: async () => {},
    })
    const outcomes: string[] = []
    const link = async (login = 'ada', cause?: ResetRequest['cause']): Promise<string> => {
      let secret = ''
      const outcome = await passwords.requestReset({
        ...(cause === undefined ? {} : { cause }),
        form: 'portal',
        filter: { kind: 'equal', attribute: 'uid', value: login },
        root: undefined,
        writer: writer(),
        validMillis: 60_000,
        perHour: 3,
        request,
        write: (made) => {
          secret = made
          return { subject: 's', text: made }
        },
      })
      outcomes.push(outcome)
      return secret
    }
    const reset = (secret: string, name?: string) =>
      passwords.reset({ form: 'portal', secret, password: 'another horse', writer: writer(name), request })
    return {
      storage,
      target,
      link,
      outcomes,
      reset,
      fail: (error: GatewayError | undefined) => {
        failure = error
      },
      setAttributes: (attributes: Record<string, string[]>) => {
        entry = { ...ada, attributes: Attributes.from({ objectClass: ['person'], uid: ['ada'], ...attributes }) }
      },
      hasSession: async () => (await storage.sessions.find('session', new Date())) !== undefined,
      reasons: async () => (await storage.audit.list({ subject: 'ada', limit: 20 })).rows.map(({ reason }) => reason),
    }
  }

  test('the outcome of a request is returned, and a run that requests a link is in the audit', async () => {
    const { storage, link, outcomes } = await open()
    const cause = (id: string) => ({ requestor: 'boss', workflow: { id, name: 'welcome' } })
    for (let i = 0; i < 4; i++) await link('ada', cause(`run-${i}`))
    await link('nobody', cause('run-5'))
    expect(outcomes).toEqual(['sent', 'sent', 'sent', 'too many', 'unknown'])
    const { rows } = await storage.audit.list({ subject: 'ada', limit: 20 })
    expect(rows.filter(({ action }) => action === 'issue').length).toBe(3)
    expect(rows.findLast(({ action }) => action === 'issue')).toMatchObject(cause('run-0'))
  })

  test('a run that is repeated after it was killed mails no second link, and the first stays valid', async () => {
    const { storage, link, outcomes, reset } = await open()
    const cause = { requestor: 'boss', workflow: { id: 'run-1', name: 'welcome' } }
    const first = await link('ada', cause)
    for (let i = 0; i < 4; i++) await link('ada', cause)
    expect(outcomes).toEqual(Array(5).fill('sent'))
    const { rows } = await storage.audit.list({ subject: 'ada', limit: 20 })
    expect(rows.filter(({ action }) => action === 'issue').length).toBe(1)
    expect(await reset(first)).toBe('changed')
  })

  test('a password that the directory rejects keeps the link and the sessions', async () => {
    const { link, reset, fail, hasSession } = await open()
    const secret = await link()
    fail(new GatewayError('BAD_REQUEST', 'too simple'))
    await expect(reset(secret)).rejects.toMatchObject({ code: 'WEAK_PASSWORD' })
    expect(await hasSession()).toBe(true)
    fail(undefined)
    expect(await reset(secret)).toBe('changed')
    expect(await hasSession()).toBe(false)
    expect(await reset(secret)).toBe('no link')
  })

  test('without a response, sessions end as if the password was set, and the link can be used again', async () => {
    const { link, reset, fail, hasSession, reasons } = await open()
    const secret = await link()
    fail(unanswered())
    await expect(reset(secret)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(await hasSession()).toBe(false)
    expect(await reasons()).toContainEqual(expect.stringContaining('outcome unknown'))
    fail(undefined)
    expect(await reset(secret)).toBe('changed')
  })

  test('sessions end for a change whose process ended before it could report', async () => {
    const { storage, hasSession } = await open()
    const change = { id: 'change', form: 'portal', owner, data: { login: 'ada', session: 'public' } }
    await storage.passwordChanges.begin(change, -1)
    expect(await settleAbandoned(storage.passwordChanges)).toBe(1)
    expect(await hasSession()).toBe(true)
    await storage.passwordChanges.begin({ ...change, id: 'reset', data: { login: 'ada' } }, -1)
    expect(await settleAbandoned(storage.passwordChanges)).toBe(1)
    expect(await hasSession()).toBe(false)
    expect(await settleAbandoned(storage.passwordChanges)).toBe(0)
  })

  test('a link sent to a mail address sets nothing after the user got another, or is deactivated', async () => {
    const { link, reset, setAttributes, hasSession, reasons } = await open()
    const secret = await link()
    setAttributes({ mail: ['ada@new.test'] })
    expect(await reset(secret)).toBe('no link')
    expect(await reasons()).toContainEqual(expect.stringContaining('another mail address'))
    setAttributes({ mail: ['ada@corp.test'], active: ['false'] })
    expect(await reset(secret)).toBe('no link')
    expect(await hasSession()).toBe(true)
    setAttributes({ mail: ['ADA@corp.test'] })
    expect(await reset(secret)).toBe('changed')
  })

  test('an account of another user with the same login is not changed', async () => {
    const { link, reset, target, hasSession } = await open([insertIdentity('people', { ...ada, id: '2' })])
    await expect(reset(await link(), 'store')).rejects.toMatchObject({ code: 'CONFLICT' })
    expect([target.passwords.size, await hasSession()]).toEqual([0, true])
  })
})
