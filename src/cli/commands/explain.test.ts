import { expect, test } from 'vitest'
import { explainCommand } from './explain.ts'

async function explain(...args: string[]) {
  const out: string[] = []
  const err: string[] = []
  const io = { stdout: (line: string) => void out.push(line), stderr: (line: string) => void err.push(line) }
  const code = await explainCommand(['--config', 'examples/quickstart', ...args], io)
  return { code, text: out.join('\n'), err: err.join('\n') }
}

const users = 'http://127.0.0.1:8080/scim/crm/Users'

test('an allowed request: application, URL, chain, rule with its reason, filter with its workflows', async () => {
  const { code, text } = await explain('GET', users, '--as', 'sub=idp', '--as', 'role=crm')
  expect(code).toBe(0)
  for (const part of [
    /^application +scim-crm$/m,
    /^url +\/scim\/crm \(crm\.yaml:\d+:\d+\)$/m,
    /^chain +api, level 20$/m,
    /jwt, required/,
    /^rule +pass +filter \(&\(sub=idp\)\(role=crm\)\): /m,
    /^decision +allowed/m,
    /^filter +filters\.ScimGateway \(crm\.yaml:\d+:\d+\)$/m,
    /target: crm/,
    /workflow: user: crm-sync/,
    /workflow: delete user: crm-delete/,
    /workflow: group members: crm-membership/,
  ]) {
    expect(text).toMatch(part)
  }
})

test('a denied request says which rule failed and why, and exits 1', async () => {
  const { code, text } = await explain('GET', users, '--as', 'sub=idp')
  expect(code).toBe(1)
  expect(text).toMatch(
    /^rule +fail +filter \(&\(sub=idp\)\(role=crm\)\): \(role=crm\) does not match: role is absent$/m,
  )
  expect(text).toMatch(/^decision +denied: 403/m)
})

test('a caller below the level of the chain would have to authenticate', async () => {
  const { code, text } = await explain('GET', users, '--as', 'sub=idp', '--as', 'role=crm', '--as', 'level=10')
  expect(code).toBe(1)
  expect(text).toContain('401')
  expect(text).not.toMatch(/^decision +allowed/m)
})

test('a path that nothing serves is 404', async () => {
  const { code, text } = await explain('GET', 'http://elsewhere.test/scim/crm/Users')
  expect(code).toBe(1)
  expect(text).toContain('404')
})

test('wrong usage exits 2', async () => {
  expect((await explain('GET')).code).toBe(2)
  expect((await explain('GET', 'no-url')).code).toBe(2)
  expect((await explain('GET', users, '--as', 'nothing')).code).toBe(2)
})

test('JSON has what each detail is about, without the columns of the text', async () => {
  const { code, text } = await explain('GET', users, '--as', 'sub=idp', '--as', 'role=crm', '--output', 'json')
  const { allowed, details } = JSON.parse(text)
  expect([code, allowed]).toEqual([0, true])
  expect(details).toContainEqual({ about: 'application', text: 'scim-crm' })
  expect(details).toContainEqual({ about: 'chain', text: 'api, level 20', more: ['jwt, required'] })
  expect(details).toContainEqual({
    about: 'rule',
    text: expect.stringMatching(/^pass {2}filter \(&\(sub=idp\)\(role=crm\)\): /),
  })
})
