import { expect, test } from 'vitest'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { crmParams } from '#testing/targets/crm-application.ts'
import { peopleParams } from '#testing/targets/people-params.ts'
import { parseWebhook } from './webhook.ts'

function parse(params: ParamValues) {
  const issues = noIssues()
  const config = parseWebhook(fakeParams(params, ['bearerToken']), issues, fakeParseContext())
  return { config, problems: issueTexts(issues.list) }
}

const url = 'https://api.example.com'

test('the capabilities of the requests together', () => {
  const can = (params: ParamValues) => {
    const { config, problems } = parse({ url, ...params })
    expect(problems).toEqual([])
    return config.can
  }
  expect(can(crmParams({ url }))).toEqual({
    lookups: true,
    groups: true,
    renames: true,
    versions: true,
    memberships: 'calls',
  })
  expect(can(peopleParams.whole)).toEqual({
    lookups: true,
    groups: false,
    renames: false,
    versions: false,
    memberships: 'body',
  })
  expect(can(peopleParams.units)).toMatchObject({ lookups: false, memberships: 'calls' })
})

test('nothing at all', () => {
  expect(parse({}).problems).toEqual(
    ['url', 'user.userID', 'findUser', 'createUser', 'updateUser', 'deleteUser'].map(
      (name) => `error params.${name}: parameter "${name}" is required`,
    ),
  )
})

test.each<[ParamValues, RegExp]>([
  [{ url: 'http://api.example.com' }, /params\.url.*this machine only/],
  [{ url: 'https://api.example.com?x=1' }, /query or a fragment/],
  [{ findUser: 'GET /people/{login}' }, /params\.findUser: "findUser": there is no \{login\} here.*\{userID\}/],
  [{ findUser: 'GET /people/{userId}' }, /did you mean "userID"/],
  [{ updateUser: 'GET /people/{userID}' }, /GET has no body|GET changes nothing/],
  [{ 'createUser.body': '{"login": "{userID}", "x": "{dispalyName}"' }, /params\.createUser\.body.*not JSON/],
  [
    { 'createUser.body': '{"login": "{userID}", "x": "{dispalyName}", "u": "{groups*}"}' },
    /"createUser\.body" writes \{dispalyName\} \(did you mean "displayName"\?\), so "user\.attribute\.dispalyName"/,
  ],
  [
    { 'creatUser.body': '{}' },
    /params\.creatUser\.body: .*no request is called "creatUser" \(did you mean "createUser"/,
  ],
  [{ 'createGroup.body': '{}' }, /"createGroup\.body" belongs to "createGroup", which is not there/],
  [{ 'createUser.total': '$.x' }, /only a list has a total/],
  [{ 'createUser.items': '$.x' }, /nothing is read from the answer/],
  [{ 'findUser.items': '$[?' }, /params\.findUser\.items/],
  [{ 'createUser.status': ['201', 'OK'] }, /params\.createUser\.status\.1: .*"OK" is not an HTTP status/],
  [{ 'updateUser.headers': 'If-Match: "{version}"' }, /uses \{version\}, so "user\.version" is required/],
  [{ deleteUser: 'DELETE /people/{id}' }, /uses \{id\}, so "user\.id" is required/],
  [{ searchUsers: 'GET /people?size={limit}&after={offset}' }, /"searchUsers\.next" is of no use without \{cursor\}/],
  [{ searchGroups: 'GET /units?page={page}&o={offset}' }, /pages go by one of \{offset\}, \{page\}/],
  [{ searchGroups: '' }, /"searchGroups" is missing beside "searchUsers"/],
  [{ 'user.groups': '' }, /memberships can be changed only where they can be read/],
  [{ 'updateUser.body': '{"name": "{displayName}"}' }, /need \{groups\*\} in both/],
  [{ addMember: 'PUT /units/{group}/{userID}' }, /required together|not both/],
  [{ deleteGroup: 'DELETE /units/{group}' }, /groups need "createGroup", "deleteGroup" and "findGroup": "createGroup"/],
  [{ 'searchUsers.by.mail': 'GET /people?mail={mail}' }, /there is no \{mail\} here/],
  [{ findUserById: 'GET /people/{id}' }, /"findUserById" is of no use without "user\.id"|uses \{id\}/],
  [{ setPassword: 'PUT /people/{userID}?p={password}' }, /\{password\} is allowed in the body only/],
  [{ setPassword: 'PUT /people/{userID}', 'setPassword.body': '{"p": "{pasword}"}' }, /\{password\} is required/],
  [{ bearerToken: 'a', apiKey: 'b' }, /"apiKey" cannot be given beside "bearerToken"/],
  [{ bearerToken: 'a\nb' }, /the secret holds characters that no header can/],
  [{ basicUser: 'u' }, /required together/],
  [{ headers: ['X: {userID}'] }, /the same for all requests/],
  [{ headers: ['Host: x'] }, /params\.headers\.0: .*made by the gateway/],
  [{ signatureHeader: 'a b', signingSecret: 's' }, /cannot be the name of a header/],
  [{ caFile: 'a', certificate: 'b' }, /"certificate" cannot be given beside "caFile"/],
  [{ retrys: '1' }, /unknown parameter "retrys" \(did you mean "retries"/],
])('%j is explained', (given, problem) => {
  const { problems } = parse({ url, ...peopleParams.whole, ...given })
  expect(problems).toContainEqual(expect.stringMatching(problem))
})

test('a secret is not shown in its problem', () => {
  const { problems } = parse({ url, ...peopleParams.whole, bearerToken: 'gehe\u0007im' })
  expect(problems.join()).not.toContain('gehe')
})
