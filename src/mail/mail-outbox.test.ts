import { expect, test } from 'vitest'
import { channelMessage, newMails } from './mail-outbox.ts'

const mail = (recipient: string, text = 'Hello') => ({ recipient, subject: 'Access', text })
const ids = (...args: Parameters<typeof newMails>) => newMails(...args).map(({ id }) => id)

test('the same step and recipient have the same id, for every attempt and text', () => {
  expect(ids('run', 3, [mail('ada@example.com')])).toEqual(ids('run', 3, [mail('ADA@Example.com', 'Hello again')]))
})

test('another run, step, occasion or recipient has another id', () => {
  const all = [
    ...ids('run', 3, [mail('ada@example.com'), mail('eve@example.com')]),
    ...ids('run', 4, [mail('ada@example.com')]),
    ...ids('run', 3, [mail('ada@example.com')], 'reminder-1'),
    ...ids('run2', 3, [mail('ada@example.com')]),
  ]
  expect(new Set(all).size).toBe(5)
  for (const id of all) expect(id).toMatch(/^[\w-]{43}$/)
})

test('one step mails a recipient once, unless the text differs', () => {
  const mails = newMails('run', 1, [mail('a@b'), mail('A@B'), mail('a@b', 'another'), mail('a@b', 'another')])
  expect(mails.map(({ text }) => text)).toEqual(['Hello', 'another'])
  expect(mails[0]).toMatchObject({ run: 'run', step: 1, recipient: 'a@b', subject: 'Access' })
})

test('no value in a mail or a channel message reverses the text after it', () => {
  const turned = {
    ...mail('a@b', 'eve\u202e asks\nfor \u2067payroll'),
    subject: '\u202eAccess',
    html: '<p>\u2066x</p>',
  }
  const order = { subject: 'Access', text: 'eve asks\nfor payroll', html: '<p>x</p>' }
  expect(newMails('run', 1, [turned])).toMatchObject([order])
  expect(channelMessage('run', 1, { ...turned, notifier: 'slack', links: [] }, '')).toMatchObject(order)
})

test('a mail that could add headers never reaches the outbox', () => {
  const injected = { ...mail('a@b'), subject: 'Hi\r\nBcc: eve@example.com' }
  expect(() => newMails('run', 1, [injected])).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
})
