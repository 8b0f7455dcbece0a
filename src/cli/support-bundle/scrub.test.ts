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
  [
    'the rest of a key',
    'cGxhbnRlZGNHeGhiblJsWkE\nplanted=\n-----END PRIVATE KEY-----\nmore',
    '[redacted]\n[redacted]\n-----END PRIVATE KEY-----\nmore',
  ],
  [
    'the rest of a key in lines of a log',
    '{"msg":"cGxhbnRlZGNHeGhiblJsWkE"}\n{"msg":"-----END PRIVATE KEY-----"}',
    '{"msg":"[redacted]"}\n{"msg":"-----END PRIVATE KEY-----"}',
  ],
  [
    'a key in base64',
    `data: ${Buffer.from('-----BEGIN RSA PRIVATE KEY-----\nplanted').toString('base64')}`,
    'data: [redacted]',
  ],
  [
    'a path',
    'https://hooks.example.com/services/T0/B0/SECRET',
    'https://hooks.example.com/services/[redacted]/[redacted]/[redacted]',
  ],
  ['a path of a bot', 'see https://api.example.com/bot12:planted/me', 'see https://api.example.com/[redacted]/me'],
  ['a path in capitals', 'HTTPS://HOOKS.EXAMPLE.COM/planted', 'HTTPS://HOOKS.EXAMPLE.COM/[redacted]'],
  [
    'escaped slashes',
    String.raw`"https:\/\/h.example\/v1\/planted"`,
    String.raw`"https:\/\/h.example\/v1\/[redacted]"`,
  ],
  ['an address without scheme', 'to //h.example/planted', 'to //h.example/[redacted]'],
  ['an encoded address', '/auth?to=https%3A%2F%2Fh.example%2Fplanted', '/auth?to=[redacted]'],
  ['an encoded address alone', 'to https%3A%2F%2Fh.example%2Fplanted', 'to https%3A[redacted]'],
  [
    'parameters',
    'https://h.example/api?sig=planted&v=2&planted',
    'https://h.example/api?sig=[redacted]&v=2&[redacted]',
  ],
  ['a name that is no name', 'https://h.example/?planted==', 'https://h.example/?[redacted]=='],
  ['a fragment', 'https://h.example/#planted', 'https://h.example/#[redacted]'],
  [
    'parameters of a path',
    'GET /callback?code=planted&state=planted 302',
    'GET /callback?code=[redacted]&state=[redacted] 302',
  ],
  [
    'parameters of a database',
    'postgres://h/gw?sslmode=require&sslkey=planted',
    'postgres://h/gw?sslmode=require&sslkey=[redacted]',
  ],
  ['a slash in a password', 'postgres://user:p/planted@host/db', 'postgres://[redacted]@host/db'],
  [
    'a call',
    'setPassword("planted"); h.set("X-Api-Key", "planted")',
    'setPassword("[redacted]"); h.set("X-Api-Key", "[redacted]")',
  ],
  ['a member', "h['Authorization'] = 'planted'", "h['Authorization'] = '[redacted]'"],
  ['an element', '<password>planted one</password>', '<password>[redacted]</password>'],
  ['an attribute', '<p name="password" value="planted"/>', '<p name="password" value="[redacted]"/>'],
  ['a token of GitHub', 'with ghp_plantedplantedplanted', 'with [redacted]'],
  ['a name of a variable', 'password: #[SMTP_PASSWORD]', 'password: #[SMTP_PASSWORD]'],
  ['nothing', 'password: ""', 'password: ""'],
])('a text has no secret: %s', (_, text, shown) => {
  expect(new Scrubber().text(text)).toBe(shown)
})

test.each([
  'https://idp.example.com:8443/realms/#[REALM]/.well-known/openid-configuration',
  'https://scim.example.com/scim/v2/Users/{id}?startIndex=1&count=100',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name',
  'file:///var/lib/gatehouse/data and postgres://db.example:5432/gatehouse?sslmode=verify-full',
  'ldap://dir.example/ou=people,dc=example,dc=com',
  '// comment\nreturn a ? b : c',
  'GET /scim/v2/Users/42 200',
])('a text keeps what is of use: %s', (text) => {
  expect(new Scrubber().text(text)).toBe(text)
})

test('a private key that is split over several values is hidden, in any order', () => {
  const lines = ['-----BEGIN PRIVATE KEY-----', 'MIIEplantedPLANTEDplanted', 'plan', '-----END PRIVATE KEY-----']
  const all = lines.map(() => '[redacted]')
  expect(new Scrubber().json({ before: 'shown', pem: lines, after: 'shown' })).toEqual({
    ...{ before: 'shown', pem: all, after: 'shown' },
  })
  const params = [3, 0, 1].map((line, index) => ({ name: `line${index}`, value: lines[line] }))
  expect(JSON.stringify(new Scrubber().json({ params }))).not.toMatch(/planted/i)
  const body = { body: lines[1], end: lines[3], start: lines[0] }
  expect(new Scrubber().json(body)).toMatchObject({ body: '[redacted]' })
})

test('secrets are found in texts that are JSON, in private JSON Web Keys and in maps of secrets', () => {
  const value = {
    annotation: JSON.stringify({ spec: { params: [{ name: 'clientSecret', value: 'planted' }] } }),
    jwk: { kty: 'EC', crv: 'P-256', x: 'shown', d: 'planted' },
    credentials: { first: 'planted', second: { third: 'planted' } },
    entry: { key: 'password', value: 'planted' },
  }
  const shown = new Scrubber().json(value)
  expect(JSON.stringify(shown)).not.toContain('planted')
  expect(shown).toMatchObject({ jwk: { kty: 'EC', crv: 'P-256', x: 'shown' } })
})

test('the path of a webhook is known elsewhere too, those of other addresses are not', () => {
  const scrubber = new Scrubber()
  scrubber.learn({ url: 'https://hooks.example.com/services/T0/B0/SECRET', other: 'https://idm.example.com/scim/crm' })
  scrubber.learn({ url: 'https://chat.example.com/in/9f8e7d6c5b4a3f2e' })
  expect(scrubber.text('POST /services/T0/B0/SECRET 404')).toBe('POST [redacted] 404')
  expect(scrubber.text('no channel 9f8e7d6c5b4a3f2e')).toBe('no channel [redacted]')
  expect(scrubber.text('GET /scim/crm/Users 200')).toBe('GET /scim/crm/Users 200')
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

test.each(['token', '://a:', '?a', 'a:', '/', '\\\\', 'a.', '-----BEGIN PRIVATE KEY', 'https%3A', 'QUJD\n', 'token  '])(
  'a long text of a log takes no longer than others: %j',
  (part) => {
    const text = part.repeat(500_000 / part.length)
    expect(new Scrubber().text(text).length).toBeGreaterThan(0)
  },
)
