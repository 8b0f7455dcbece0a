import { expect, test } from 'vitest'
import { Turns } from '#kernel/turns.ts'

const limits = { all: 3, ofOne: 2, publicText: 'Others are at it.', retryAfter: 7 }
const refused = expect.objectContaining({
  code: 'TOO_MANY_REQUESTS',
  status: 429,
  publicText: 'Others are at it.',
  retryAfter: 7,
})

test('nobody has more turns than one may have, nor all together more than all', () => {
  const turns = new Turns(limits)
  const first = turns.take('ada')
  turns.take('ada')
  expect(() => turns.take('ada')).toThrow(refused)
  turns.take('grace')
  expect(() => turns.take('alan')).toThrow(refused)
  first()
  turns.take('alan')
  expect(() => turns.take('ada')).toThrow(refused)
})

test('a turn ends once', () => {
  const turns = new Turns(limits)
  const [first] = [turns.take('ada'), turns.take('ada')]
  first?.()
  first?.()
  turns.take('ada')
  expect(() => turns.take('ada')).toThrow(refused)
})
