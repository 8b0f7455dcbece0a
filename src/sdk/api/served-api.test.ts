import { expect, test } from 'vitest'
import * as z from 'zod'
import { emptyAnswer } from './json-answer.ts'
import { routed, ServedApi } from './served-api.ts'

const show = { summary: 'One', handle: async () => emptyAnswer(204) }

const apiOf = (routes: Readonly<Record<string, `GET /${string}`>>) =>
  new ServedApi({
    title: 'T',
    version: '1',
    answers: { Failure: z.object({}) },
    bodies: {},
    failure: { description: 'No', schema: 'Failure' },
    operations: routed(routes, { show, ...({ other: show } as object) }),
  })

test('an operation of a table is described at its route', () => {
  const described = apiOf({ show: 'GET /one/{id}', other: 'GET /two' })
  expect(described.operations.map(({ id, path }) => [id, path])).toEqual([
    ['show', '/one/{id}'],
    ['other', '/two'],
  ])
})

test('an operation without a route is neither described nor served', () => {
  expect(() => apiOf({ show: 'GET /one/{id}' })).toThrow('the operation "other" has no route')
})
