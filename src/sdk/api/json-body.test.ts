import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import type { GatewayError } from '#kernel/errors.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { readJsonBody } from './json-body.ts'

const schema = z.strictObject({
  name: z.string().min(1).max(5),
  list: z
    .array(z.strictObject({ n: z.number() }))
    .max(2)
    .optional(),
  map: z.record(z.string(), z.string()).optional(),
})

const read = (body: string | Buffer, type = 'application/json') =>
  readJsonBody(fakeRequest({ method: 'POST', headers: { 'content-type': type }, body }), schema, 100_000)

const problems = async (body: unknown): Promise<string[]> => {
  const failure: unknown = await read(typeof body === 'string' ? body : JSON.stringify(body)).catch((error) => error)
  expect(failure).toMatchObject({ code: 'BAD_REQUEST' })
  return (failure as { problems: { pointer: string; detail: string }[] }).problems.map(
    ({ pointer, detail }) => `${pointer} ${detail}`,
  )
}

test('a body that matches the schema is read, with any parameters of its type', async () => {
  expect(await read('{"name":"a","map":{"x":"y"}}', 'Application/JSON; charset=UTF-8')).toEqual({
    name: 'a',
    map: { x: 'y' },
  })
})

test('every unknown, missing or wrong member is reported with its path', async () => {
  expect(await problems({ list: [{ n: 'x', 'a/b~': 1 }], extra: 1 })).toEqual([
    '/name is required',
    '/list/0/n must be a number',
    '/list/0/a~1b~0 is not known here',
    '/extra is not known here',
  ])
  expect(await problems({ name: 7 })).toEqual(['/name must be text'])
  expect(await problems({ name: null })).toEqual(['/name must be text'])
  expect(await problems({ name: 'abcdef', list: [{ n: 1 }, { n: 1 }, { n: 1 }] })).toEqual([
    '/name is longer or larger than 5',
    '/list is longer or larger than 2',
  ])
  expect(await problems([])).toEqual([' must be an object'])
})

test.each(['{"__proto__":{"a":"b"},"name":"a"}', '{"name":"a","map":{"__proto__":"x"}}', '[[[{"__proto__":1}]]]'])(
  '%s is rejected, though schemas would ignore it',
  async (body) => {
    expect(await problems(body)).toEqual([' has a member named "__proto__"'])
  },
)

test('a body that is not JSON in UTF-8, or of another type, is rejected', async () => {
  for (const body of ['', '{', '{"name":"a"} x', Buffer.from([0x7b, 0xff, 0x7d])]) {
    await expect(read(body)).rejects.toMatchObject({ code: 'INVALID_JSON' })
  }
  for (const type of ['', 'text/plain', 'application/x-www-form-urlencoded', 'application/jsonp']) {
    await expect(read('{"name":"a"}', type)).rejects.toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' })
  }
})

describe('a hostile body', () => {
  const many = (count: number, one: (i: number) => string) => Array.from({ length: count }, (_, i) => one(i)).join(',')

  test.each([
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'is nested deeper than 16 levels'],
    [`{"name":"a",${many(100_000, (i) => `"k${i}":1`)}}`, 'has an object of more than 1,000 members'],
    [`{"name":"a",${many(100_000, () => '"name":"a"')}}`, 'has an object of more than 1,000 members'],
    [`{"list":[${many(100_000, () => '{"n":"x"}')}]}`, 'has a list of more than 2,000 elements'],
    [`{"list":[${many(2000, () => `[${many(40, () => '""')}]`)}]}`, 'has more than 60,000 values'],
  ])('is rejected before the schema sees any of it: %.40s', async (body, bound) => {
    let seen = 0
    const counting = z.preprocess((value) => {
      seen++
      return value
    }, z.unknown())
    const request = fakeRequest({ method: 'POST', headers: { 'content-type': 'application/json' }, body })
    await expect(readJsonBody(request, counting, 2_000_000)).rejects.toMatchObject({
      code: 'INVALID_JSON',
      status: 400,
      publicText: `The request body ${bound}.`,
    })
    expect(seen).toBe(0)
  })

  test('within the bounds, only a few of its mistakes are read and reported', async () => {
    const issues = Array.from({ length: 50_000 }, (_, i) => ({ code: 'custom', path: [i], message: 'wrong' }))
    let read = 0
    const watched = new Proxy(issues, {
      get: (list, name, receiver) => {
        if (typeof name === 'string' && /^\d+$/.test(name)) read++
        return Reflect.get(list, name, receiver)
      },
    })
    const failing = { safeParse: () => ({ success: false, error: { issues: watched } }) } as unknown as z.ZodType
    const request = fakeRequest({ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
    const failure = await readJsonBody(request, failing, 1000).catch((error: unknown) => error)
    expect((failure as GatewayError).problems).toHaveLength(20)
    expect(read).toBeLessThanOrEqual(20)
    const extras = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`k${i}`, 1]))
    expect(await problems({ name: 'a', ...extras })).toHaveLength(20)
  })
})
