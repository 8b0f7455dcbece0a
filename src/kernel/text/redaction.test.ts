import { describe, expect, test } from 'vitest'
import { isSecretName, redact, withoutTokens } from './redaction.ts'

describe('redact', () => {
  test('replaces secrets by their names, at any depth', () => {
    const secret = 'hunter2'
    const fields = {
      password: secret,
      headers: { Authorization: secret, cookie: secret, accept: 'x' },
      list: [{ clientSecret: secret }, [{ api_key: secret }]],
      deep: { a: { b: { c: { refresh_token: secret } } } },
      bare: Object.assign(Object.create(null), { userPassword: secret }),
    }
    const shown = JSON.stringify(redact(fields))
    expect(shown).not.toContain(secret)
    expect(shown).toContain('"accept":"x"')
    expect(fields.headers.cookie).toBe(secret)
  })

  test('a secret name hides any value', () => {
    expect(redact({ tokens: ['a', { b: 'c' }] })).toEqual({ tokens: '[redacted]' })
  })

  test('ends even if a value contains itself, and keeps dates', () => {
    const loop: Record<string, unknown> = {}
    loop['loop'] = loop
    expect(JSON.stringify(redact({ loop }))).toContain('[too deep]')
    const at = new Date(0)
    expect(redact({ at })).toEqual({ at })
    const error: Error = new Error('x')
    for (const cause of [error, { error }, [error]]) {
      error.cause = cause
      expect(JSON.stringify(redact({ error })).length).toBeLessThan(1000)
    }
  })

  const jwt = `eyJ${'a'.repeat(30)}.eyJ${'b'.repeat(200)}.${'c'.repeat(300)}`

  test.each([
    ['whole', `the token ${jwt} is bad`, 'the token [token] is bad'],
    ['quoted', `"${jwt}"`, '"[token]"'],
    ['cut off in its header', `Bearer ${jwt.slice(0, 20)}`, 'Bearer [token]'],
    ['cut off in its claims', `${jwt.slice(0, 200)}...`, '[token]'],
    ['not at all', 'a key eyJ and monkeyJumps', 'a key eyJ and monkeyJumps'],
  ])('a token within a text %s', (_, text, shown) => {
    expect(withoutTokens(text)).toBe(shown)
  })

  test('replaces tokens in texts, messages and causes', () => {
    const error = new Error(`bad ${jwt}`, { cause: new Error(jwt, { cause: { said: jwt, list: [jwt] } }) })
    const shown = JSON.stringify(redact({ text: jwt, deep: { list: [jwt] }, err: error, error }))
    expect(shown).not.toMatch(/eyJ|aaaaa|bbbbb|ccccc/)
    expect(shown).toContain('bad [token]')
  })

  test.each(['status', 'path', 'requestId', 'subject', 'workflow'])('%s is not a secret', (name) => {
    expect(isSecretName(name)).toBe(false)
  })
})
