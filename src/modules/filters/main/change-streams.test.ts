import type { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import type { RunChange } from '#domain/run.ts'
import { formerIdentity } from '#identity/identity.ts'
import type { RunListener } from '#sdk/workflow/run-changes.ts'
import { ann, openMain, someone } from '#testing/main-fixture.ts'

const change = (id: string, users: readonly string[], approvers: readonly string[] = []): RunChange => ({
  id,
  state: 'waiting',
  updated: new Date(0),
  users: users.map(formerIdentity),
  approvers: approvers.map(formerIdentity),
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
    const { body } = await main.answer('GET', '/events', undefined, who)
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
