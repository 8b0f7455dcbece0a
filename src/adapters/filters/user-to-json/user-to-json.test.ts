import { expect, test } from 'vitest'
import type { Subject } from '#identity/subject.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import userToJson from './user-to-json.ts'

async function ask(params: ParamValues, caller: Subject) {
  const issues = noIssues()
  const prepared = userToJson.prepare(fakeParams(params), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const filter = await prepared.create(fakeModuleHost())
  const exchange = { request: fakeRequest({}), application: 'app', mount: '/app', pathInfo: '', subject: caller }
  const seen: (Subject | undefined)[] = []
  const answer = await filter.handle(exchange, async (next) => {
    seen.push(next)
    return { status: 204, headers: {} }
  })
  return { answer, seen }
}

const ada = subject('uid=ada,o=Tremolo', { cn: ['Adä'], mail: ['a@b.test'], userPassword: ['x'], UserJSON: ['old'] })
const described = {
  userDN: 'uid=ada,o=Tremolo',
  attribs: {
    cn: { name: 'cn', values: ['Adä'], dataType: 'string' },
    mail: { name: 'mail', values: ['a@b.test'], dataType: 'string' },
  },
  authLevel: 20,
  authChain: 'test',
  authComplete: true,
}

test('answers with the caller, without secrets', async () => {
  const { answer, seen } = await ask({ doProxy: 'false' }, ada)
  expect([answer.status, answer.headers['cache-control'], seen]).toEqual([200, 'no-store', []])
  expect(JSON.parse(String(answer.body))).toEqual(described)
  expect(answer.headers['userjson']).toBe(answer.body)
  expect(String(answer.body)).toMatch(/^[\x20-\x7e]*$/)
})

test('leaves out the header that would be too long, and attributes that are to be ignored', async () => {
  const long = subject('uid=ada,o=Tremolo', { groups: Array.from({ length: 1000 }, (_, i) => `group-${i}`) })
  const { answer } = await ask({}, long)
  expect([answer.headers['userjson'], String(answer.body).includes('group-999')]).toEqual([undefined, true])
  const ignoring = await ask({ attributesToIgnore: ['Groups'] }, long)
  expect(JSON.parse(String(ignoring.answer.body)).attribs).toEqual({})
})

test('gives the JSON to the filters after it with doProxy', async () => {
  const { answer, seen } = await ask({ doProxy: 'true' }, ada)
  expect(answer).toEqual({ status: 204, headers: {} })
  expect(JSON.parse(seen[0]?.attributes.first('UserJSON') ?? '')).toEqual(described)
  expect(ada.attributes.values('UserJSON')).toEqual(['old'])
})
