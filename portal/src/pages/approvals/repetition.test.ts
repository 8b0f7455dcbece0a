import { expect, test } from 'vitest'
import type { PreviewStep } from '#sdk/contract/preview.ts'
import { withoutRepetition } from './repetition.ts'

const values = (name: string, ...given: string[]) => ({ name, values: given, dataType: 'string' as const })
const submitted = { mail: values('mail', 'a@x'), office: values('office', 'tyo') }
const attribute = (name: string, ...after: string[]) => ({ name, secret: false, before: [], after })
const step = {
  kind: 'user',
  action: 'create',
  name: 'ada',
  target: 'people',
  attributes: [attribute('mail', 'a@x'), attribute('office', 'ber'), attribute('toString', 'x')],
  joins: [],
  leaves: [],
  cut: false,
} satisfies PreviewStep

test('the preview of a new account leaves out what is shown as submitted, and keeps what differs', () => {
  expect(withoutRepetition(step, submitted)).toMatchObject({ attributes: [{ name: 'office' }, { name: 'toString' }] })
})

test('a change of an existing account is shown whole', () => {
  const change = { ...step, action: 'change' as const }
  expect(withoutRepetition(change, submitted)).toBe(change)
})
