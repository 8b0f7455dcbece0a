import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId, secretHash } from '#kernel/ids.ts'
import { SecretBox } from '#keys/secret-box.ts'
import { loadSecretKeys } from '#keys/secret-keys.ts'
import type { UniqueValue } from '#sdk/target/new-account.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { type DurableProcess, openDurable } from '#testing/workflows/durable-fixture.ts'
import type { RegistrationStart } from './registrations.ts'
import { Registrations } from './registrations.ts'

const hour = 3600_000
const login: UniqueValue = { attribute: 'uid', value: 'ada' }
const mailTo = (recipient: string) => ({
  recipient,
  write: (secret: string) => ({ subject: 's', text: `x ${secret}` }),
})
const key = randomBytes(32).toString('base64')

const startOf = (id: string, more: Partial<RegistrationStart> = {}): RegistrationStart => ({
  id,
  unique: [login],
  call: {
    head: { workflow: 'join', requester: 'anonymous' },
    user: { userID: 'ada', attributes: new Attributes(), groups: [] },
    asynchronous: true,
    kept: true,
    params: {},
  },
  check: async () => [],
  ...more,
})

onEachDatabase('registrations', (freshUrl) => {
  async function open(url?: string) {
    const process = await openDurable(url ?? (await freshUrl()), {
      workflows: { join: [{ taskType: 'provision', target: 'store', sync: true }] },
      targets: { store: new MemoryTarget() },
    })
    const secrets = new SecretBox(
      () => loadSecretKeys({ environment: { GATEHOUSE_SECRET_KEY: key }, dataFolder: '' }),
      { what: 'registration', damaged: 'INTERNAL' },
    )
    const store = process.storage.registrations
    return {
      process,
      store,
      registrations: new Registrations({ store, secrets, runs: process.runs, clock: systemClock }),
    }
  }

  const countRuns = async ({ storage }: DurableProcess): Promise<number> =>
    (await storage.runs.list({ limit: 10 })).runs.length

  test('repeated requests start one run per registration', async () => {
    const { process, registrations } = await open()
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => registrations.start(startOf('r1'))))
    expect(new Set(outcomes.map((outcome) => outcome.kind === 'started' && outcome.result.id)).size).toBe(1)
    expect(await countRuns(process)).toBe(1)
  })

  test('a value is reserved while the run exists, and free once it has ended', async () => {
    const { process, store, registrations } = await open()
    const outcome = await registrations.start(startOf('r1'))
    if (outcome.kind !== 'started') throw new Error(outcome.kind)
    await store.holdForRun('r1', outcome.result.id, -hour)
    expect(await registrations.start(startOf('r2'))).toEqual({ kind: 'taken', values: [login] })
    expect(await registrations.start(startOf('r3', { unique: [{ attribute: 'UID', value: 'ADA' }] }))).toMatchObject({
      kind: 'taken',
    })
    expect(await store.deleteExpired()).toBe(0)
    process.worker()
    await process.settled(outcome.result.id, 'completed')
    expect(await registrations.start(startOf('r2'))).toMatchObject({ kind: 'started' })
  })

  test('a gateway that dies between starting a run and recording it loses nothing', async () => {
    const { store, registrations } = await open()
    await registrations.start(startOf('r1'))
    // As if the run had not been recorded, and the time of the start had passed.
    await store.holdForRun('r1', 'no-such-run', -hour)
    expect(await registrations.start(startOf('r2'))).toEqual({ kind: 'taken', values: [login] })
  })

  test('a value that is taken, or could not be checked, reserves nothing', async () => {
    const { process, registrations } = await open()
    expect(await registrations.start(startOf('r1', { check: async () => [login] }))).toEqual({
      kind: 'taken',
      values: [login],
    })
    const down = async (): Promise<never> => {
      throw new GatewayError('TARGET_UNREACHABLE', 'the directory is down')
    }
    await expect(registrations.start(startOf('r2', { check: down }))).rejects.toMatchObject({
      code: 'TARGET_UNREACHABLE',
    })
    expect(await countRuns(process)).toBe(0)
    expect(await registrations.start(startOf('r3'))).toMatchObject({ kind: 'started' })
  })

  test('only one of many registrations uses an invitation; if its run does not start, it is open again', async () => {
    const url = await freshUrl()
    const [one, other] = [await open(url), await open(url)]
    const draft = { email: 'ada@example.com', attributes: {}, validMillis: hour, write: mailTo('').write }
    const { id } = await one.registrations.invitations.create('form', draft, { by: 'boss' })
    const broken = startOf('r0', { invitation: id })
    await expect(
      one.registrations.start({
        ...broken,
        call: { ...broken.call, head: { ...broken.call.head, workflow: 'no-such-workflow' } },
      }),
    ).rejects.toBeInstanceOf(GatewayError)
    expect((await one.registrations.invitations.get('form', id))?.state).toBe('open')
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        (i % 2 === 0 ? one : other).registrations.start(
          startOf(`r${i + 1}`, { invitation: id, unique: [{ attribute: 'uid', value: `u${i}` }] }),
        ),
      ),
    )
    expect(outcomes.filter(({ kind }) => kind === 'started')).toHaveLength(1)
    expect(outcomes.filter(({ kind }) => kind === 'not-invited')).toHaveLength(9)
    expect((await other.registrations.invitations.get('form', id))?.state).toBe('accepted')
  })

  test('a waiting registration is encrypted, and only the secret of the mail decrypts it', async () => {
    const { process, store, registrations } = await open()
    const id = newId()
    await registrations.keep('form', id, { password: 'correct horse' }, mailTo('ada@example.com'), hour)
    const [mail] = await process.storage.mails.claim(1, 1_000)
    const secret = mail?.text.slice(2) ?? ''
    expect(mail?.recipient).toBe('ada@example.com')
    expect(await registrations.open('form', secret)).toEqual({ id, data: { password: 'correct horse' } })
    expect(await registrations.open('other', secret)).toBeUndefined()
    expect(await registrations.open('form', `${secret}x`)).toBeUndefined()
    const stored = await store.findPending('form', secretHash(secret))
    expect(JSON.stringify(stored)).not.toMatch(/horse/)
    expect(JSON.stringify(stored)).not.toContain(secret)
    await registrations.forget(id)
    expect(await registrations.open('form', secret)).toBeUndefined()
  })

  test("a mail that can't be sent stores nothing", async () => {
    const { registrations, process } = await open()
    await expect(registrations.keep('form', newId(), {}, mailTo('a@b\r\nBcc: c@d'), hour)).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
    expect(await process.storage.mails.claim(1, 1_000)).toEqual([])
  })

  test('a token is valid once, for all gateways', async () => {
    const url = await freshUrl()
    const [one, other] = [await open(url), await open(url)]
    const used = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : other).registrations.useOnce('t', hour)),
    )
    expect(used.filter(Boolean)).toHaveLength(1)
    expect(await one.registrations.useOnce('u', hour)).toBe(true)
  })

  test('a resent invitation has another secret; every change is audited', async () => {
    const { registrations, process } = await open()
    const { invitations } = registrations
    const secrets: string[] = []
    const write = (secret: string) => {
      secrets.push(secret)
      return { subject: 's', text: secret }
    }
    const draft = { email: 'ada@example.com', attributes: { team: 'blue' }, validMillis: hour, write }
    const { id } = await invitations.create('form', draft, { by: 'boss', requestId: 'r' })
    await invitations.resend('form', id, { write, validMillis: hour }, { by: 'boss' })
    const [first = '', second = ''] = secrets
    expect(await invitations.open('form', first)).toBeUndefined()
    expect(await invitations.open('form', second)).toMatchObject({
      id,
      sent: 2,
      state: 'open',
      attributes: { team: 'blue' },
    })
    await expect(invitations.revoke('other', id, { by: 'boss' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await invitations.revoke('form', id, { by: 'boss' })).toMatchObject({ state: 'revoked' })
    expect(await invitations.open('form', second)).toBeUndefined()
    await expect(invitations.revoke('form', id, { by: 'boss' })).rejects.toMatchObject({ code: 'CONFLICT' })
    const { rows } = await process.storage.audit.list({ subject: 'ada@example.com', limit: 10 })
    expect(rows.map(({ action }) => action)).toEqual(['delete', 'replace', 'add'])
  })

  test('an expired invitation says so', async () => {
    const { registrations } = await open()
    const draft = { email: 'ada@example.com', attributes: {}, validMillis: -1, write: mailTo('').write }
    expect((await registrations.invitations.create('form', draft, { by: 'boss' })).state).toBe('expired')
  })
})
