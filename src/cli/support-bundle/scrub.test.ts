import { expect, test } from 'vitest'
import { Scrubber } from '#cli/support-bundle/scrub.ts'

test.each([
  ['a text in quotes', 'var password = "planted horse, planted staple";', 'var password = "[redacted]";'],
  ['in other quotes', "password: 'planted;planted,planted'", "password: '[redacted]'"],
  ['with escaped quotes', String.raw`{"password":"a\"planted"}`, '{"password":"[redacted]"}'],
  [
    'in escaped quotes',
    String.raw`"{\"token\":\"planted one\",\"a\":1}"`,
    String.raw`"{\"token\":\"[redacted]\",\"a\":1}"`,
  ],
  ['a block of YAML', 'a:\n  password: |-\n    planted 1\n    planted 2\n  b: 1', 'a:\n  password: [redacted]\n  b: 1'],
  ['a list of pairs', "host=h password='planted one' dbname=x", "host=h password='[redacted]' dbname=x"],
  ['an @ in a password', 'postgres://user:p@planted@host/db', 'postgres://[redacted]@host/db'],
  ['cookies', 'Cookie: session=planted; b=planted', 'Cookie: [redacted]'],
  [
    'a key of OpenPGP',
    '-----BEGIN PGP PRIVATE KEY BLOCK-----\nplanted\n-----END PGP PRIVATE KEY BLOCK-----',
    '[redacted]',
  ],
  ['the rest of a key', 'cGxhbnRlZA\nplanted=\n-----END PRIVATE KEY-----', '[redacted]\n-----END PRIVATE KEY-----'],
  ['a name of a variable', 'password: #[SMTP_PASSWORD]', 'password: #[SMTP_PASSWORD]'],
  ['nothing', 'password: ""', 'password: ""'],
])('a text has no secret: %s', (_, text, shown) => {
  expect(new Scrubber().text(text)).toBe(shown)
})

test.each(['x-api-key', 'Access-Key', 'SIGNING_KEY', 'privateKey', 'clientSecret'])(
  '%s is a secret by its name',
  (name) => {
    const scrubber = new Scrubber()
    expect(scrubber.json({ [name]: 'planted' })).toEqual({ [name]: '[redacted]' })
    expect(scrubber.json({ [name]: { value: 'planted' } })).toEqual({ [name]: { value: '[redacted]' } })
    expect(scrubber.json({ name, value: 'planted' })).toEqual({ name, value: '[redacted]' })
  },
)

test.each([
  [
    'several hosts',
    'postgres://caller:planted-password@one.example:5432,two.example:5432/gatehouse',
    'planted-password',
  ],
  ['an encoded character', 'https://caller:planted%40password@one.example/', 'planted@password'],
])('a password of an address is known elsewhere too: %s', (_, address, password) => {
  const fromObject = new Scrubber()
  fromObject.learn({ spec: { url: address } })
  expect(fromObject.text(`login with ${password} failed`)).toBe('login with [redacted] failed')
  const fromVariable = new Scrubber()
  fromVariable.learnEnvironment({ PLACE: address })
  expect(fromVariable.text(`login with ${password} failed`)).toBe('login with [redacted] failed')
})

test('a long word of a log costs no more than others', () => {
  const text = 'token'.repeat(100_000)
  expect(new Scrubber().text(text)).toBe(text)
})
