import { expect, test } from 'vitest'
import { Limits } from '#modules/filters/register/limits.ts'

const settings = { submitsPerMinute: 2, submitsPerValuePerHour: 2, readsPerMinute: 2 }
const mail = [{ attribute: 'mail', value: 'victim@example.com' }]

test('reads from ever more addresses do not make it forget how often a value was sent', () => {
  const limits = new Limits(settings, () => new Date(0))
  for (let i = 0; i < 2; i++) limits.takeValues(mail)
  for (let i = 0; i < 25_000; i++) limits.takeRead(`2001:db8:${(i >> 8).toString(16)}:${(i & 255).toString(16)}::1`)
  expect(() => limits.takeValues([{ attribute: 'MAIL', value: 'Victim@Example.com' }])).toThrow('too often')
})

test('a user sends a hundred invitations at once, then two per minute', () => {
  let now = 0
  const limits = new Limits(settings, () => new Date(now))
  for (let i = 0; i < 100; i++) limits.takeInvitation('ann')
  expect(() => limits.takeInvitation('ann')).toThrow('too many invitations')
  limits.takeInvitation('bob')
  now += 60_000
  for (let i = 0; i < 2; i++) limits.takeInvitation('ann')
  expect(() => limits.takeInvitation('ann')).toThrow('too many invitations')
})
