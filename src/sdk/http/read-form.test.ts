import { expect, test } from 'vitest'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { readForm } from './read-form.ts'

const read = (body: string, type = 'application/x-www-form-urlencoded') =>
  readForm(fakeRequest({ method: 'POST', headers: { 'content-type': type }, body }), 100_000)

test('a form is read', async () => {
  expect([...(await read('a=1&b=%20+x&a=2', 'application/x-www-form-urlencoded; charset=utf-8'))]).toEqual([
    ['a', '1'],
    ['b', '  x'],
    ['a', '2'],
  ])
  await expect(read('{}', 'application/json')).rejects.toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' })
})

test('a form of more than 100 fields is rejected', async () => {
  expect([...(await read('a=1&'.repeat(99)))]).toHaveLength(99)
  await expect(read('a=1&'.repeat(100))).rejects.toMatchObject({
    code: 'BAD_REQUEST',
    publicText: 'The form has more than 100 fields.',
  })
  await expect(read('&'.repeat(100_000))).rejects.toMatchObject({ status: 400 })
})
