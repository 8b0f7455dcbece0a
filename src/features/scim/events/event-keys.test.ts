import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { expectDescribedBy } from '#testing/gateway/api-contract.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import eventKeys from './event-keys.ts'

const signingKey = generateKeyPairSync('rsa', { modulusLength: 2048 })

async function ask(params: ParamValues = {}, method = 'GET', pathInfo = '') {
  const asked: string[] = []
  const prepared = eventKeys.prepare(fakeParams(params), noIssues(), fakeParseContext())
  const host = fakeModuleHost()
  const keys = {
    ...host.keys,
    signingKey: async (name: string) => {
      asked.push(name)
      return signingKey
    },
  }
  const filter = await prepared.create({ ...host, keys })
  const response = await filter.handle(
    {
      request: fakeRequest({ method }),
      application: 'a',
      mount: '/keys',
      pathInfo,
      subject: subject('uid=Anonymous,o=x'),
    },
    async () => {
      throw new Error('there is nothing behind this filter')
    },
  )
  expectDescribedBy(prepared, method, pathInfo, response)
  return { response, asked }
}

test('publishes the public part of the keys, and nothing private', async () => {
  const { response, asked } = await ask()
  expect(asked).toEqual(['scim-events'])
  expect(response.headers).toMatchObject({ 'content-type': 'application/jwk-set+json' })
  const { keys } = JSON.parse(String(response.body)) as { keys: Record<string, unknown>[] }
  expect(keys.map((key) => Object.keys(key).sort())).toEqual([['alg', 'e', 'kid', 'kty', 'n', 'use']])
  expect((await ask({ key: ['a', 'b', 'a'] })).asked).toEqual(['a', 'b'])
  expect((await ask({}, 'HEAD')).response.body).toBeUndefined()
})

test('other methods and paths are rejected', async () => {
  await expect(ask({}, 'POST')).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
  await expect(ask({}, 'GET', '/x')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
