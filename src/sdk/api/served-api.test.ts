import { expect, test } from 'vitest'
import * as z from 'zod'
import { subject } from '#testing/login/subjects.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { placeAtSegment } from './api-description.ts'
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

test('an API answers at its mount with and without a slash, and its documents are no operation', async () => {
  const api = new ServedApi<string>({
    title: 'T',
    version: '1',
    answers: { Failure: z.object({}) },
    bodies: {},
    failure: { description: 'No', schema: 'Failure' },
    documentsAt: placeAtSegment,
    operations: {
      list: { route: 'GET', summary: 'All', handle: async (parts) => ({ status: 200, headers: {}, body: parts }) },
      show: {
        route: 'GET /{id}',
        summary: 'One',
        handle: async (_, __, id) => ({ status: 200, headers: {}, body: id }),
      },
    },
  })
  const filter = api.filter('all')
  const bodyAt = async (pathInfo: string) =>
    (
      await filter.handle({
        request: fakeRequest({ url: `https://x/a/things${pathInfo}` }),
        application: 'a',
        mount: '/a/things',
        pathInfo,
        subject: subject('uid=ann,o=x'),
      })
    ).body
  expect([await bodyAt(''), await bodyAt('/'), await bodyAt('/one')]).toEqual(['all', 'all', 'one'])
  expect(JSON.parse(String(await bodyAt('/swagger.json')))).toMatchObject({
    basePath: '/a',
    paths: { '/things': {}, '/things/{id}': {} },
  })
})

test('an operation without a route is neither described nor served', () => {
  expect(() => apiOf({ show: 'GET /one/{id}' })).toThrow('the operation "other" has no route')
})
