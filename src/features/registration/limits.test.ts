import { expect, test } from 'vitest'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { Limits } from './limits.ts'

const settings = { submitsPerMinute: 2, submitsPerValuePerHour: 2, readsPerMinute: 2 }
const mail = [{ attribute: 'mail', value: 'victim@example.com' }]

test('reads from ever more addresses do not make it forget how often a value was sent', async () => {
  const limits = new Limits(settings, 'form', new MemoryRateLimits(() => new Date(0)))
  for (let i = 0; i < 2; i++) await limits.takeValues(mail)
  for (let i = 0; i < 25_000; i++)
    await limits.takeRead(`2001:db8:${(i >> 8).toString(16)}:${(i & 255).toString(16)}::1`)
  await expect(limits.takeValues([{ attribute: 'MAIL', value: 'Victim@Example.com' }])).rejects.toThrow('too many')
})

test('a user sends a hundred invitations at once, then two per minute', async () => {
  let now = 0
  const limits = new Limits(settings, 'form', new MemoryRateLimits(() => new Date(now)))
  for (let i = 0; i < 100; i++) await limits.takeInvitation('ann')
  await expect(limits.takeInvitation('ann')).rejects.toThrow('too many invitations')
  await limits.takeInvitation('bob')
  now += 60_000
  for (let i = 0; i < 2; i++) await limits.takeInvitation('ann')
  await expect(limits.takeInvitation('ann')).rejects.toThrow('too many invitations')
})
