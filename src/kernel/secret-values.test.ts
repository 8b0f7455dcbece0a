import fc from 'fast-check'
import { expect, test } from 'vitest'
import { redact } from '#kernel/text/redaction.ts'
import { GatewayError } from './errors.ts'
import { hideSecrets, SecretValues, shownReason, withoutSecrets } from './secret-values.ts'

function hiding(...values: string[]): SecretValues {
  const hidden = new SecretValues()
  for (const [i, value] of values.entries()) hidden.add(value, `#[V${i}]`)
  return hidden
}

const basic = (text: string): string => Buffer.from(text).toString('base64')

test.each([
  ['S3cr3t/V4lue', 'as it is', 'at ldap://S3cr3t/V4lue:636', 'at ldap://#[V0]:636'],
  ['S3cr3t/V4lue', 'in lower case', 'host s3cr3t/v4lue', 'host #[V0]'],
  [
    'S3cr3t/V4lue',
    'in the name of a variable',
    'DB_S3CR3T_V4LUE_PW in the environment',
    'DB_#[V0]_PW in the environment',
  ],
  ['S3cr3t/V4lue', 'URL-encoded', '/x?q=a%20S3cr3t%2fV4lue&', '/x?q=a%20#[V0]&'],
  ['a"b\\c\nd e', 'JSON-escaped', JSON.stringify({ text: 'a"b\\c\nd e' }), '{"text":"a\\"b\\\\c\\nd e"}'],
  ['a"b\\c d é', 'JSON-escaped', JSON.stringify({ text: 'a"b\\c d é' }), '{"text":"#[V0]"}'],
  [
    'S3cr3t/V4lue',
    'in base64',
    `Basic ${basic('x:S3cr3t/V4lue')} ${basic('S3cr3t/V4lue')}`,
    /^Basic [\w=]{0,4}#\[V0\][\w=]{0,4} #\[V0\]=*$/,
  ],
  [
    'ldaps://gate:hunter22@ldap.corp.test:636',
    'in parts',
    'ENOTFOUND ldap.corp.test as hunter22',
    'ENOTFOUND #[V0] as #[V0]',
  ],
  ['https://hooks.test/services/T0/B0/XyZ1', 'in parts', 'POST /services/T0/B0/XyZ1: 404', 'POST #[V0]: 404'],
  ['http://127.0.0.1:8080', 'in parts, but for a loopback host', 'from 127.0.0.1', 'from 127.0.0.1'],
  ['hunter', 'within a word', 'hunters and a hunter', 'hunters and a #[V0]'],
  ['0123456789abcdef', 'within a word, if it is long', 'x0123456789abcdefx', 'x#[V0]x'],
  ['0123456789abcdefghijklmnopqrstuvwxyz', 'cut off', 'found "0123456789abcdefghijklm…"', 'found "#[V0]…"'],
  ['0123456789abcdefghijklmnopqrstuvwxyz', 'cut off at the end', 'found 0123456789abcdefghijklm', 'found #[V0]'],
  ['12345', 'short and quoted', 'pin "12345", 12345 users', 'pin "#[V0]", 12345 users'],
  ['true', 'a flag', 'expected "true"', 'expected "true"'],
  ['1', 'a digit', 'line 1: "1"', 'line 1: "1"'],
  ['', 'empty', 'line 1', 'line 1'],
])('%j is found %s', (value, _, text, expected) => {
  if (typeof expected === 'string') expect(hiding(value).without(text)).toBe(expected)
  else expect(hiding(value).without(text)).toMatch(expected)
})

test('one line of a key is found, and the words around keys are not', () => {
  const key = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0B'}\n${'AQEFAASCBKcwggSjAgEAAoIB'}\n-----END PRIVATE KEY-----`
  expect(hiding(key).without('"AQEFAASCBKcwggSjAgEAAoIB" is not -----BEGIN PRIVATE KEY-----')).toBe(
    '"#[V0]" is not -----BEGIN PRIVATE KEY-----',
  )
})

test('a text is the same when values are replaced again', () => {
  const hidden = new SecretValues()
  hidden.add('PASSWORD', '#[OTHER]')
  hidden.add('hunter22', '#[DB_PASSWORD]')
  const once = hidden.without('"hunter22" and "password"')
  expect(once).toBe('"#[DB_PASSWORD]" and "#[OTHER]"')
  expect(hidden.without(once)).toBe(once)
})

test('no value from six characters on is shown where it is quoted, in any of its forms', () => {
  const forms = [String, encodeURIComponent, (text: string) => JSON.stringify(text).slice(1, -1), basic]
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 6 }), fc.constantFrom(...forms), (text, form) => {
      const value = text.replace(/[\p{Cs}\s#]/gu, '-')
      fc.pre(value.length >= 6)
      const shown = form(value).replace(/=+$/, '')
      expect(hiding(value).without(`<"${shown}">`)).toMatch(/^<"#\[V0\].?">$/)
    }),
  )
})

test('errors and log lines of the process have names of values while they are hidden', () => {
  const hidden = hiding('S3cr3tV4lue')
  const show = hideSecrets(hidden)
  try {
    const cause = new Error('refused S3cr3tV4lue')
    const error = new GatewayError('TARGET_FAILED', 'to S3cr3tV4lue', {
      cause,
      publicText: 'S3cr3tV4lue?',
      problems: [{ pointer: '', detail: 'S3cr3tV4lue' }],
    })
    expect(error).toMatchObject({ message: 'to #[V0]', publicText: '#[V0]?', problems: [{ detail: '#[V0]' }] })
    const refused = new GatewayError('BAD_REQUEST', 'x', { publicText: (shown) => `S3cr3tV4lue ${shown}` })
    expect(refused.textNaming('S3cr3tV4lue')).toBe('#[V0] #[V0]')
    expect(shownReason(cause)).toBe('refused #[V0]')
    expect(JSON.stringify(redact({ err: error, list: [{ a: 'S3cr3tV4lue' }] }))).not.toContain('S3cr3t')
  } finally {
    show()
  }
  expect(withoutSecrets('S3cr3tV4lue')).toBe('S3cr3tV4lue')
})
