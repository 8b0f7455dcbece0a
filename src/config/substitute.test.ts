import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Substitution } from '#config/substitute.ts'

function apply(text: string, environment: Record<string, string>, values: Record<string, string>) {
  const problems: string[] = []
  const substitution = new Substitution(environment, new Map(Object.entries(values)))
  return { text: substitution.apply(text, [], (_path, message) => problems.push(message)), problems }
}

test('the environment wins over values, and values over the default', () => {
  expect(apply('#[A] #[B] #[C:c:d] #[D:]', { A: 'env' }, { A: 'value', B: 'value', C: 'given' })).toEqual({
    text: 'env value given ',
    problems: [],
  })
  expect(apply('#[C:c:d]', {}, {}).text).toBe('c:d')
})

test('an OpenUnison name with dots and dashes is a name', () => {
  expect(apply('#[a.b-c.D]', {}, { 'a.b-c.D': 'x' }).text).toBe('x')
})

test('names of JavaScript itself are not values', () => {
  expect(apply('#[constructor]', {}, {}).problems).toHaveLength(1)
})

test('substituted text is never parsed again', () => {
  fc.assert(
    fc.property(fc.string(), (inner) => {
      expect(apply('<#[A]>', { A: `#[B]${inner}` }, { B: 'leak' }).text).toBe(`<#[B]${inner}>`)
    }),
  )
})

test('a value is shown unless it is, or looks like, a secret', () => {
  const environment = {
    REGION: 'eu-1',
    DB_PASSWORD: 'hunter2',
    ARGOCD_TOKEN: 'hush',
    SIGNING_KEY: 'hush',
    DATABASE: 'postgres://gate:hunter2@db.corp.test/gate',
    GATEHOUSE_URL: 'https://gw.corp.test',
    GATEHOUSE_DATABASE: 'plain',
  }
  const values = new Map([
    ['HOST', 'gw.corp.test'],
    ['FROM_SECRET', 'x'],
  ])
  const substitution = new Substitution(environment, values, { secretNames: new Set(['FROM_SECRET']) })
  expect(substitution.shownValue('REGION')).toEqual({ kind: 'value', text: 'eu-1' })
  expect(substitution.shownValue('HOST')).toEqual({ kind: 'value', text: 'gw.corp.test' })
  expect(substitution.shownValue('GATEHOUSE_URL')).toEqual({ kind: 'value', text: 'https://gw.corp.test' })
  expect(substitution.shownValue('NONE')).toEqual({ kind: 'absent' })
  for (const name of ['DB_PASSWORD', 'ARGOCD_TOKEN', 'SIGNING_KEY', 'DATABASE', 'GATEHOUSE_DATABASE', 'FROM_SECRET']) {
    expect(substitution.shownValue(name), name).toEqual({ kind: 'secret' })
  }
  expect([...substitution.used.keys()]).toEqual(['REGION', 'HOST', 'GATEHOUSE_URL'])
})

test.each([
  ['DB_PW', 'hunter2'],
  ['SMTP_AUTH', 'hunter2'],
  ['GITHUB_PAT', 'hunter2'],
  ['adminPwd', 'hunter2'],
  ['JDBC', 'jdbc:postgresql://db.corp.test/gate?user=gate&password=hunter2'],
  ['ADO', 'Server=db;User Id=gate;Password = hunter2'],
  ['LINK', 'redis://:a/b#c@cache.corp.test'],
  ['PEM', '-----BEGIN RSA PRIVATE KEY-----'],
  ['TEXT', 'eyJhbGciOiJI.eyJzdWIi.x'],
])('%s is not shown with the value %j', (name, value) => {
  expect(new Substitution({ [name]: value }, new Map()).shownValue(name)).toEqual({ kind: 'secret' })
})

test.each([
  ['PWD', '/srv'],
  ['AUTHOR', 'ada@corp.test'],
  ['AUTH_URL', 'https://login.corp.test'],
  ['AUTHORITY', 'https://login.corp.test:8443/a/@team'],
  ['PATH_PREFIX', '/a'],
  ['TITLE', 'password reset'],
])('%s is shown with the value %j', (name, text) => {
  expect(new Substitution({ [name]: text }, new Map()).shownValue(name)).toEqual({ kind: 'value', text })
})

test('messages have the placeholders of secrets instead of their values', () => {
  const environment = { DB_PASSWORD: 'hunter"2', REGION: 'region', BIND_PW: 'abc', FROM_SECRET: '$&$1$2' }
  const substitution = new Substitution(environment, new Map(), { secretNames: new Set(['FROM_SECRET']) })
  const text = substitution.apply('#[DB_PASSWORD] #[REGION] #[BIND_PW] #[FROM_SECRET]', [], () => {})
  expect(substitution.withoutSecrets(`${text} ${JSON.stringify(text)}`)).toBe(
    '#[DB_PASSWORD] region abc #[FROM_SECRET] "#[DB_PASSWORD] region abc #[FROM_SECRET]"',
  )
  expect(new Substitution(environment, new Map()).withoutSecrets('hunter"2')).toBe('hunter"2')
  const alike = new Substitution({ A_TOKEN: 'hunter', B_TOKEN: 'hunter-and-gatherer' }, new Map())
  expect(alike.withoutSecrets(alike.apply('#[A_TOKEN] #[B_TOKEN]', [], () => {}))).toBe('#[A_TOKEN] #[B_TOKEN]')
})

test('an unknown name is empty, with a reason', () => {
  const { text, problems } = apply('#[HOSTS]', {}, { HOST: 'x' })
  expect(text).toBe('')
  expect(problems).toEqual(['#[HOSTS] is neither in the environment nor in a values document (did you mean "HOST"?)'])
})
