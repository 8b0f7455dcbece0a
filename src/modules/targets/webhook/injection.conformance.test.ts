import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { hostileTexts, syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import { type GroupTarget, hasGroups, hasLookups, type LookupTarget, type TargetRequest } from '#sdk/target.ts'
import { asSteps } from '#testing/as-steps.ts'
import { type CrmApplication, crmParams, openWebhook, startCrmApplication } from '#testing/crm-application.ts'

const count = 10_000
/** Values of one user beside the login, which is one more. */
const perUser = 24
const attributes = ['mail', 'displayName', 'phone']
const request = { idempotencyKey: 'step', audit() {} } as unknown as TargetRequest

let application: CrmApplication
let target: LookupTarget & GroupTarget
beforeAll(async () => {
  application = await startCrmApplication()
  const opened = asSteps(await openWebhook(crmParams({ url: application.url })))
  if (!hasLookups(opened) || !hasGroups(opened)) throw new Error('the example has no look-ups or groups')
  target = opened
})
afterAll(async () => {
  await target?.close?.()
  await application?.stop()
})

const pieces = [
  ...hostileTexts,
  ...['/', '..', '.', '?', '#', '&', '=', '%', '%2e%2e', '%00', '+', ' ', '\\', '"', '{userID}', '{id}', '{{', '}}'],
  ...['\u0000', '\r\n', '\ud800', '\u202e', '*', '()', ',', ';', '<>', '$.items', '../teams', '"}', '"If-Match"', '😀'],
]
const hostile = fc.oneof(
  fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: 'binary', maxLength: 8 })), {
    minLength: 1,
    maxLength: 4,
  }),
  fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 2 }),
)
const values = fc
  .sample(hostile, { numRuns: count, seed: 5 })
  .map((parts, i) => (i % 10 === 0 ? parts.join('') : `${parts.join('')}${i}`))

const plain = (user: User | undefined) =>
  user && {
    userID: user.userID,
    mail: user.attributes.values('mail'),
    displayName: user.attributes.values('displayName'),
    phone: user.attributes.values('phone'),
    groups: user.groups,
  }

test('hostile values come back as they went in, and touch nobody else', { timeout: 300_000 }, async () => {
  const bystander = userOf('bystander', { mail: ['by@x.test'], displayName: ['By'] }, ['crew'])
  await target.createGroup('crew', { description: ['Stands by'] }, request)
  await target.createUser(bystander, attributes, request)
  const before = { user: await target.findUser('bystander', attributes, request), crew: await target.findGroup('crew') }

  const batches = Array.from({ length: Math.ceil(count / (perUser + 1)) }, (_, i) =>
    values.slice(i * (perUser + 1), (i + 1) * (perUser + 1)),
  )
  const logins = new Set<string>()
  let refused = 0
  await inParallel(batches, 8, async ([login = '', displayName = '', phone = '', ...mail]) => {
    const user = userOf(login, { mail, displayName: [displayName], phone: [phone] }, ['crew'])
    const isNew = !logins.has(login.toLowerCase())
    logins.add(login.toLowerCase())
    if (login === '' || !login.isWellFormed()) {
      await expect(target.createUser(user, attributes, request)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      refused++
      return
    }
    if (!isNew) return
    await target.createUser(user, attributes, request)
    expect(plain(await target.findUser(login, attributes, request))).toEqual(plain(user))
    const moved = userOf(login, { mail: mail.slice(1), displayName: [phone], phone: [displayName] })
    await target.syncUser(moved, syncOptions(attributes, { keepGroups: true }), request)
    expect(plain(await target.lookupUserByLogin(login))).toEqual({ ...plain(moved), groups: ['crew'] })
    const found = await target.searchUsers({
      filter: { kind: 'equal', attribute: 'userID', value: login },
      offset: 0,
      limit: 9,
    })
    expect(found.items.map(({ userID }) => userID)).toEqual([login])
    await target.deleteUser(user, request)
    expect(await target.findUser(login, attributes, request)).toBeUndefined()
  })
  expect(refused).toBeGreaterThan(0)

  const known = new Set(['bystander', 'crew'])
  await inParallel(values, 8, async (value, i) => {
    const isRefused = (error: unknown) => (error as { code?: string }).code === 'BAD_REQUEST'
    const ask = async (look: () => Promise<unknown>): Promise<void> => {
      const answer = await look().catch((error: unknown) => {
        if (!isRefused(error)) throw error
        return undefined
      })
      if (!known.has(value.toLowerCase())) expect(answer).toBeUndefined()
    }
    const first = async (search: Promise<{ readonly items: readonly unknown[] }>) => (await search).items[0]
    const filter = { kind: 'equal', attribute: 'mail', value } as const
    const looks = [
      () => target.lookupUserByLogin(value),
      () => target.lookupUserById(value),
      () => target.lookupGroupByName(value),
      () => target.lookupGroupById(value),
      () => first(target.searchUsers({ filter, offset: 0, limit: 9 })),
      () => first(target.searchGroups({ filter: { ...filter, attribute: 'name' }, offset: 0, limit: 9 })),
    ]
    await ask(looks[i % looks.length] ?? (async () => 'no look-up'))
  })

  await inParallel(values.slice(0, 300), 8, async (value) => {
    if (value === '' || !value.isWellFormed()) return
    const isNew = !logins.has(`group ${value.toLowerCase()}`)
    logins.add(`group ${value.toLowerCase()}`)
    if (!isNew) return
    await target.createGroup(value, { description: [value] }, request)
    expect(await target.findGroup(value)).toMatchObject({ name: value, description: value })
    await target.deleteGroup(value, request)
    expect(await target.findGroup(value)).toBeUndefined()
  })

  const { total } = await target.searchUsers({ offset: 0, limit: 1 })
  const after = { user: await target.findUser('bystander', attributes, request), crew: await target.findGroup('crew') }
  expect({ total, ...after }).toEqual({ total: 1, ...before })
})

test('64 KiB come back; more, and what no address can hold, is refused by name', async () => {
  const long = '\u0000é😀"\\'.repeat(7000).slice(0, 16_000)
  const user: User = { userID: 'long', attributes: Attributes.from({ displayName: [long] }), groups: [] }
  await target.createUser(user, attributes, request)
  expect((await target.findUser('long', attributes, request))?.attributes.first('displayName')).toBe(long)
  const tooLong = userOf('longer', { displayName: ['x'.repeat(65 * 1024)] })
  await expect(target.createUser(tooLong, attributes, request)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  expect(await target.findUser('longer', attributes, request)).toBeUndefined()
  const login = target.createUser(userOf('x'.repeat(10_000)), attributes, request)
  await expect(login).rejects.toMatchObject({ code: 'BAD_REQUEST', publicText: expect.stringContaining('userID') })
  await expect(target.lookupUserById('..')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  const two = userOf('two', { displayName: ['a', 'b'] })
  await expect(target.createUser(two, attributes, request)).rejects.toMatchObject({
    code: 'BAD_REQUEST',
    publicText: expect.stringContaining('displayName'),
  })
  await target.deleteUser(user, request)
})
