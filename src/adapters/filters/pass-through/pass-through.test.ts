import { expect, test } from 'vitest'
import completeLogin from '#adapters/filters/complete-login/complete-login.ts'
import noCache from '#adapters/filters/no-cache/no-cache.ts'
import stopProcessing from '#adapters/filters/stop-processing/stop-processing.ts'
import type { FilterModule } from '#sdk/filter/filter.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { hideCookie, mapUriRoot, syncTlsKeys, xForward } from './pass-through.ts'

async function ask(module: FilterModule, params: ParamValues = {}, method = 'GET') {
  const issues = noIssues()
  const prepared = module.prepare(fakeParams(params), issues, fakeParseContext())
  const filter = await prepared.create(fakeModuleHost())
  const exchange = {
    request: fakeRequest({ method }),
    application: 'app',
    mount: '/app',
    pathInfo: '/x',
    subject: subject('uid=ada,o=Tremolo'),
  }
  const headers = { 'cache-control': 'public', 'content-type': 'text/plain', 'set-cookie': 'a=b' }
  const next = async () => ({ status: 201, headers, body: 'next' })
  return { answer: await filter.handle(exchange, next), issues: issueTexts(issues.list), answers: prepared.answers }
}

test.each<[FilterModule, ParamValues]>([
  [xForward, { createHeaders: 'false' }],
  [hideCookie, {}],
  [syncTlsKeys, { target: 'k8s', ns: 'openunison' }],
  [mapUriRoot, { newRoot: '/register', paramName: 'registerURI' }],
])('$className lets requests pass unchanged, and check says that it has no effect', async (module, params) => {
  const { answer, issues, answers } = await ask(module, params)
  expect([answers, answer.body, answer.headers['cache-control']]).toEqual([false, 'next', 'public'])
  expect(issues).toEqual([expect.stringMatching(/^warning params: filters\.\w+ has no effect here: /)])
})

test('NoCache replaces only what lets caches keep a response', async () => {
  const { answer, issues } = await ask(noCache)
  expect([answer.status, answer.body, issues]).toEqual([201, 'next', []])
  expect(answer.headers).toEqual({
    'cache-control': 'no-cache, no-store, must-revalidate',
    pragma: 'no-cache',
    expires: '0',
    'content-type': 'text/plain',
    'set-cookie': 'a=b',
  })
})

test('StopProcessing and CompleteLogin answer themselves', async () => {
  expect((await ask(stopProcessing)).answer).toEqual({ status: 200, headers: { 'cache-control': 'no-store' } })
  expect((await ask(completeLogin)).answer).toMatchObject({ status: 303, headers: { location: '/' } })
  await expect(ask(completeLogin, {}, 'POST')).rejects.toMatchObject({ status: 405 })
})
