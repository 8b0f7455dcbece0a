import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SecretValues } from '#kernel/secret-values.ts'
import { HiddenValues } from './hidden-values.ts'
import { Substitution } from './substitute.ts'

const hidden = (): HiddenValues => new HiddenValues(new SecretValues())

function apply(text: string, environment: Record<string, string>, values: Record<string, string>) {
  const problems: string[] = []
  const substitution = new Substitution(environment, new Map(Object.entries(values)), hidden())
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
  const substitution = new Substitution(environment, values, hidden(), { secretNames: new Set(['FROM_SECRET']) })
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
  expect(new Substitution({ [name]: value }, new Map(), hidden()).shownValue(name)).toEqual({ kind: 'secret' })
})

test.each([
  ['PWD', '/srv'],
  ['AUTHOR', 'ada@corp.test'],
  ['AUTH_URL', 'https://login.corp.test'],
  ['AUTHORITY', 'https://login.corp.test:8443/a/@team'],
  ['PATH_PREFIX', '/a'],
  ['TITLE', 'password reset'],
])('%s is shown with the value %j', (name, text) => {
  expect(new Substitution({ [name]: text }, new Map(), hidden()).shownValue(name)).toEqual({ kind: 'value', text })
})

describe('messages', () => {
  /** The message about a place that has the text, or, without `about`, about another one. */
  function shown(
    text: string,
    environment: Record<string, string>,
    message: (substituted: string) => string,
    about = true,
  ) {
    const values = hidden()
    const secretNames = new Set(['FROM_SECRET'])
    const given = new Map([
      ['SHOWN', 'from-values'],
      ['FROM_SECRET', 'from-secret'],
    ])
    const substitution = new Substitution(environment, given, values, { secretNames })
    const document = {}
    const substituted = substitution.apply(text, ['a', 'b'], () => {}, document)
    const path = about ? ['a', 'b', 0] : ['a', 'c']
    return values.messageOf({ level: 'error', path, message: message(substituted), document })
  }
  const quoted = (text: string): string => `no "${text}"`

  test.each([
    ['any value of the environment', '#[REGION]', { REGION: 'europe-1' }, 'no "#[REGION]"'],
    ['a value of a secret', '#[FROM_SECRET]', {}, 'no "#[FROM_SECRET]"'],
    ['values documents and defaults', '#[SHOWN] #[NONE:default]', {}, 'no "from-values default"'],
    ['the written text around a value', 'ldap://#[A]#[SHOWN]/', { A: 'ab' }, 'no "ldap://#[A]from-values/"'],
    ['values that begin alike', '#[A] #[B]', { A: 'hunter', B: 'hunter-and-gatherer' }, 'no "#[A] #[B]"'],
    ['patterns of replacements', '#[A]', { A: '$&$1$2' }, 'no "#[A]"'],
    ["the gateway's own address", '#[GATEHOUSE_URL]', { GATEHOUSE_URL: 'https://gw.test' }, 'no "https://gw.test"'],
  ])('show %s by name, unless everyone may know it', (_, text, environment, expected) => {
    expect(shown(text, environment, quoted)).toBe(expected)
    expect(shown(text, environment, quoted, false)).toBe(expected)
  })

  test('about a value have no part of it', () => {
    const environment = { LIST: 'one, Two,"three"' }
    expect(shown('#[LIST]', environment, () => '"two" and "one" are not known, "four" is')).toBe(
      '"#[LIST]" and "#[LIST]" are not known, "four" is',
    )
  })

  test('about a short value have no word of it; others have it', () => {
    expect(shown('#[A]', { A: 'abc' }, () => 'no secret abc/key, ABC_KEY in the environment')).toBe(
      'no secret #[A]/key, #[A]_KEY in the environment',
    )
    expect(shown('#[A]', { A: '1' }, () => 'found "1", which is not from 1 to 9')).toBe(
      'found "#[A]", which is not from 1 to 9',
    )
    expect(shown('#[A]', { A: 'true' }, () => '"true" or "false" expected, 1 of 2', false)).toBe(
      '"true" or "false" expected, 1 of 2',
    )
  })
})

test('an unknown name is empty, with a reason', () => {
  const { text, problems } = apply('#[HOSTS]', {}, { HOST: 'x' })
  expect(text).toBe('')
  expect(problems).toEqual(['#[HOSTS] is neither in the environment nor in a values document (did you mean "HOST"?)'])
})
