import { afterEach, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { entryIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import javaScriptAuthorization from './javascript-authorization.ts'

const opened: Authorization[] = []
const subject: Subject = {
  dn: Dn.parse('uid=ada,o=Tremolo'),
  identity: entryIdentity('test', 'ada'),
  uid: 'ada',
  attributes: Attributes.from({ department: ['it'] }),
  level: 20,
  chain: 'login',
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((authorization) => authorization.close?.()))
})

async function open(javaScript: string, params: Record<string, string> = {}): Promise<Authorization> {
  const issues = noIssues()
  const given = fakeParams({ javaScript, ...params })
  const prepared = javaScriptAuthorization.prepare(given, issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const authorization = await prepared.create(fakeModuleHost())
  opened.push(authorization)
  return authorization
}

test('the function sees the subject, the parameters of the rule and its own', async () => {
  const authorization = await open(
    `function init(config) { state.wanted = config.department[0] }
     function isAuthorized(subject, params) {
       return subject.attributes.department.includes(state.wanted) && subject.dn === 'uid=ada,o=Tremolo' && params[0] === 'x'
     }`,
    { department: 'it' },
  )
  expect(await authorization.isAuthorized(subject, ['x'])).toBe(true)
  expect(await authorization.isAuthorized(subject, ['y'])).toBe(false)
  expect(
    await authorization.isAuthorized({ ...subject, attributes: Attributes.from({ department: ['hr'] }) }, ['x']),
  ).toBe(false)
})

test.each(['return 1', 'return "true"', 'return', 'throw new Error("x")', 'process.exit(0)'])(
  'nothing but true lets anyone pass: %s',
  async (body) => {
    const authorization = await open(`function isAuthorized() { ${body} }`)
    await expect(Promise.resolve(authorization.isAuthorized(subject, []))).rejects.toMatchObject({
      code: 'TARGET_FAILED',
    })
  },
)

test('code without the function is refused', async () => {
  await expect(open('function init() {}')).rejects.toThrow(/no function isAuthorized/)
})

test('it may list whom it would accept, and need not', async () => {
  const named = await open(
    `function isAuthorized() { return true }
     function listPossibleApprovers(params) { return ['ada', 'uid=' + params[0] + ',ou=people,o=Tremolo'] }`,
  )
  expect(await named.listPossibleApprovers?.(['bob'])).toEqual(['ada', 'uid=bob,ou=people,o=Tremolo'])
  expect((await open('function isAuthorized() { return true }')).listPossibleApprovers).toBeUndefined()
  const wrong = await open('function isAuthorized() { return true }\nfunction listPossibleApprovers() { return "ada" }')
  await expect(wrong.listPossibleApprovers?.([])).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})

test('a legacy script gets the subject in the form of its Java API', async () => {
  const authorization = await open(
    `ArrayList = Java.type("java.util.ArrayList");
     function init(config) { state.put("wanted", config.get("department").getValues().get(0)) }
     function isAuthorized(subject, params) {
       var departments = subject.getAttribs().get("department")
       if (departments == null || subject.getAuthLevel() < 20) return false
       return departments.getValues().contains(state.get("wanted")) && params[0] == "x" && subject.getUserDN() == "uid=ada,o=Tremolo"
     }
     function listPossibleApprovers(params) {
       var approvers = new ArrayList()
       approvers.add("uid=" + params[0])
       return approvers
     }`,
    { department: 'it' },
  )
  expect(await authorization.isAuthorized(subject, ['x'])).toBe(true)
  expect(await authorization.isAuthorized(subject, ['y'])).toBe(false)
  expect(await authorization.isAuthorized({ ...subject, level: 1 }, ['x'])).toBe(false)
  expect(await authorization.listPossibleApprovers?.(['bob'])).toEqual(['uid=bob'])
})
