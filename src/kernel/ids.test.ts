import { expect, test } from 'vitest'
import { idTime, newId } from '#kernel/ids.ts'

test('an id contains its creation time', () => {
  const before = Date.now()
  const made = idTime(newId()).getTime()
  expect(made).toBeGreaterThanOrEqual(before)
  expect(made).toBeLessThanOrEqual(Date.now() + 1000)
  expect(idTime('0196f0c1-b4aa-7f10-8b21-1a2b3c4d5e6f').getTime()).toBe(0x0196f0c1b4aa)
  expect(idTime('no id').getTime()).toBe(0)
})
