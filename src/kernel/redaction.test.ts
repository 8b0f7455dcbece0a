import { describe, expect, test } from 'vitest'
import { isSecretName, redact } from '#kernel/redaction.ts'

describe('redact', () => {
  test('replaces secrets by their names, however deep they stand', () => {
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

  test('a name that is a secret hides whatever it holds', () => {
    expect(redact({ tokens: ['a', { b: 'c' }] })).toEqual({ tokens: '[redacted]' })
  })

  test('ends, also where a value holds itself, and leaves errors and dates as they are', () => {
    const loop: Record<string, unknown> = {}
    loop['loop'] = loop
    expect(JSON.stringify(redact({ loop }))).toContain('[too deep]')
    const [err, at] = [new Error('x'), new Date(0)]
    expect(redact({ err, at })).toEqual({ err, at })
  })

  test.each(['status', 'path', 'requestId', 'subject', 'workflow'])('%s is no secret', (name) => {
    expect(isSecretName(name)).toBe(false)
  })
})
