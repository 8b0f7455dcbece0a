import type { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { loginIdentity } from '#identity/identity.ts'
import type { SessionListener } from '#requests/sessions/session-listener.ts'
import { ann, openMain, someone } from '#testing/modules/main-fixture.ts'
import type { RunChange } from '#workflows/record/run.ts'
import type { RunListener } from '#workflows/runs/run-listener.ts'

const change = (id: string, users: readonly string[], approvers: readonly string[] = []): RunChange => ({
  id,
  state: 'waiting',
  updated: new Date(0),
  users: users.map(loginIdentity),
  approvers: approvers.map(loginIdentity),
})

async function open() {
  const listeners = new Set<RunListener>()
  const main = await openMain({
    runChanges: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  })
  const stream = async (who = ann) => {
    const { body, endsWithFilter } = await main.answer('GET', '/events', undefined, who)
    expect(endsWithFilter).toBe(true)
    const texts: string[] = []
    ;(body as Readable).on('data', (part: Buffer) => texts.push(part.toString()))
    return { body: body as Readable, events: () => texts.join('').match(/(?<=event: )\w+|(?<="ids":\[)[^\]]+/g) ?? [] }
  }
  const announce = (changes: readonly RunChange[], complete = true) => {
    for (const listener of listeners) listener.changed(changes, complete)
  }
  return { ...main, listeners, stream, announce }
}

test('a user hears of own requests and approvals only, an administrator that something changed', async () => {
  const { stream, announce } = await open()
  const [mine, boss] = [await stream(), await stream(someone('boss'))]
  announce([change('one', ['ann'], ['boss']), change('other', ['carol'])])
  await expect.poll(mine.events).toEqual(['all', 'requests', '"one"'])
  await expect.poll(boss.events).toEqual(['all', 'approvals'])
  announce([], false)
  await expect.poll(mine.events).toEqual(['all', 'requests', '"one"', 'all'])
  for (const { body } of [mine, boss]) body.destroy()
})

test('a stream announces the sessions of the caller, or of the user that an administrator watches', async () => {
  const watched = new Map<string, SessionListener>()
  const main = await openMain({
    params: { administrators: ['filter;(groups=admins)'] },
    sessionChanges: (user, listener) => {
      watched.set(user, listener)
      return () => watched.delete(user)
    },
  })
  const boss = someone('boss', ['admins'])
  const ask = (query: string, who = ann) => main.answer('GET', `/events${query}`, undefined, who)
  await expect(ask('?sessionsOf=bob')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  await expect(ask('?sessionsOf=nobody', boss)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  for (const query of ['?sessions=yes', '?sessions=true&sessionsOf=bob', '?session=true']) {
    await expect(ask(query, boss)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
  const none = (await ask('')).body as Readable
  expect(watched.size).toBe(0)
  const own = (await ask('?sessions=true')).body as Readable
  expect([...watched.keys()]).toEqual([ann.identity])
  const other = (await ask('?sessionsOf=bob', boss)).body as Readable
  expect(watched.size).toBe(2)
  let text = ''
  own.on('data', (part: Buffer) => {
    text += part.toString()
  })
  watched.get(ann.identity)?.changed()
  await expect.poll(() => text).toMatch(/event: all\n.*\n\nevent: sessions\ndata: \{\}\n\n$/)
  for (const stream of [none, own, other]) stream.destroy()
  await expect.poll(() => watched.size).toBe(0)
})

test('streams end with the filter and with the client, and a user has at most 32', async () => {
  const { stream, listeners, filter } = await open()
  const streams = await Promise.all(Array.from({ length: 32 }, () => stream()))
  await expect(stream()).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  streams[0]?.body.destroy()
  await expect.poll(() => listeners.size).toBe(31)
  for (const listener of [...listeners].slice(0, 2)) listener.ended()
  await expect.poll(() => listeners.size).toBe(29)
  await filter.close?.()
  await expect.poll(() => listeners.size).toBe(0)
})
