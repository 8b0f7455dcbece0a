import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Base64, bytesOf, decodeText, encodeText, fromBase64, toBase64 } from './bytes.ts'
import { Attribute, Group, User } from './identity.ts'
import { IllegalArgumentException, NumberFormatException } from './java-exception.ts'
import { StringBuffer } from './java-lang.ts'
import { Integer, JavaString, JSUtils, Long } from './java-types.ts'
import { Filter, FilterType } from './ldap-filter.ts'
import { URI, URLDecoder, URLEncoder } from './uri.ts'

const anyText = fc.string({ unit: 'binary' })

describe('bytes', () => {
  test('UTF-8 equals that of Node.js', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const bytes = encodeText(text)
        expect(Buffer.from(bytes)).toEqual(Buffer.from(text.replace(/\p{Surrogate}/gu, '?')))
        expect(decodeText(bytes)).toBe(Buffer.from(bytes).toString())
      }),
    )
  })

  test('invalid UTF-8 is replaced', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = decodeText(bytes)
        expect(text.includes('\ufffd')).toBe(Buffer.from(bytes).toString().includes('\ufffd'))
        if (!text.includes('\ufffd')) expect(text).toBe(Buffer.from(bytes).toString())
      }),
    )
    for (const bytes of [
      [0xc0, 0x80],
      [0xed, 0xa0, 0x80],
      [0xf5, 0x80, 0x80, 0x80],
      [0xe2, 0x82],
    ]) {
      expect(decodeText(Uint8Array.from(bytes))).toContain('\ufffd')
    }
  })

  test('bytes are signed, as in Java', () => {
    expect([...JSUtils.string2bytes('ü')]).toEqual([-61, -68])
    expect(JSUtils.bytes2string([-61, -68])).toBe('ü')
    expect(new JavaString(JSUtils.string2bytes('ü'), 'UTF-8')).toEqual(new String('ü'))
    expect(() => encodeText('x', 'UTF-16')).toThrow(IllegalArgumentException)
    expect(() => bytesOf('text' as never)).toThrow(IllegalArgumentException)
  })
})

describe('Base64', () => {
  test('equals that of Node.js', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = Buffer.from(bytes).toString('base64')
        expect(toBase64(bytes)).toBe(text)
        expect(Base64.getUrlEncoder().withoutPadding().encodeToString(bytes)).toBe(
          Buffer.from(bytes).toString('base64url'),
        )
        expect(Buffer.from(fromBase64(text))).toEqual(Buffer.from(bytes))
        expect(bytesOf(Base64.getUrlDecoder().decode(Buffer.from(bytes).toString('base64url')))).toEqual(bytes)
      }),
    )
    expect(JSUtils.base64Decode(Buffer.from('Zoë').toString('base64'))).toBe('Zoë')
  })

  test('rejects invalid text, except for mail', () => {
    for (const text of ['a', 'ab!d', 'YQ==YQ==', '-_-_'])
      expect(() => Base64.getDecoder().decode(text)).toThrow(IllegalArgumentException)
    expect([...Base64.getMimeDecoder().decode('Y\r\nQ==')]).toEqual([97])
  })
})

describe('URLs', () => {
  test('the web reads back what is encoded for a form', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const encoded = URLEncoder.encode(text, 'UTF-8')
        expect(encoded).toMatch(/^[A-Za-z0-9.*_+%-]*$/)
        const sound = text.replace(/\p{Surrogate}/gu, '?')
        expect(new URLSearchParams(`x=${encoded}`).get('x')).toBe(sound)
        expect(URLDecoder.decode(encoded, 'UTF-8')).toBe(sound)
      }),
    )
    expect(URLEncoder.encode("a b*~!'()", 'UTF-8')).toBe('a+b*%7E%21%27%28%29')
  })

  test('a URI has parts', () => {
    const uri = URI.create('https://u@x.test:8443/a%20b/c?q=%C3%BC&r#f')
    expect([
      uri.getScheme(),
      uri.getHost(),
      uri.getPort(),
      uri.getPath(),
      uri.getRawPath(),
      uri.getQuery(),
      uri.getFragment(),
    ]).toEqual(['https', 'x.test', 8443, '/a b/c', '/a%20b/c', 'q=ü&r', 'f'])
    expect([URI.create('/x').getHost(), URI.create('/x').getPort(), URI.create('/x').getQuery()]).toEqual([
      null,
      -1,
      null,
    ])
    expect(URI.create('http://x').equals(new URI('http://x'))).toBe(true)
  })

  test.each(['a b', 'a\nb', 'a"b', 'a\\b', '%zz', 'a\u0000b', '{x}', '%'])('%j is not a URI', (text) => {
    expect(() => URI.create(text)).toThrow(IllegalArgumentException)
  })
})

describe('numbers and texts', () => {
  test('numbers are read strictly', () => {
    expect([
      Integer.parseInt('-12'),
      Integer.parseInt('+7'),
      Integer.parseInt('ff', 16),
      Long.parseLong('9007199254740991'),
    ]).toEqual([-12, 7, 255, 9007199254740991])
    for (const text of ['', 'x', '1.5', ' 1', '1e3', '2147483648', null, '0x1'])
      expect(() => Integer.parseInt(text)).toThrow(NumberFormatException)
  })

  test('a buffer grows and shrinks', () => {
    const buffer = new StringBuffer('ab').append(1).append(null).insert(0, '>').deleteCharAt(1)
    expect([buffer.toString(), buffer.length(), buffer.charAt(0), buffer.indexOf('1')]).toEqual(['>b1null', 7, '>', 2])
    buffer.setLength(2)
    expect(buffer.reverse().toString()).toBe('b>')
    expect(() => buffer.charAt(9)).toThrow(/index 9/)
  })

  test('formats', () => {
    expect(JavaString.format('%s-%d%%%n', 'a', 1)).toBe('a-1%\n')
    expect(() => JavaString.format('%x', 1)).toThrow(/%x is not served/)
    expect(() => JavaString.format('%s')).toThrow(IllegalArgumentException)
    expect([JavaString.join(',', ['a', null]), JavaString.join('-', 1, 2), JavaString.valueOf(null)]).toEqual([
      'a,null',
      '1-2',
      'null',
    ])
  })
})

describe('filters', () => {
  test('have nodes', () => {
    const filter = new Filter(' (&(|(cn=a\\2a)(mail=*@x*y))(!(sn=*))(n>=3)) ')
    const root = filter.getRoot()
    expect(root.getType() === FilterType.AND).toBe(true)
    const [or, not, more] = (root.getChildren()?.toArray() ?? []) as ReturnType<Filter['getRoot']>[]
    expect(
      or
        ?.getChildren()
        ?.toArray()
        .map((node) => `${(node as typeof root).getType()} ${(node as typeof root).getValue()}`),
    ).toEqual(['EQUALS a*', 'SUBSTR *@x*y'])
    expect([
      not?.getNot()?.getName(),
      not?.getNot()?.getType().name(),
      more?.getType().name(),
      more?.getValue(),
    ]).toEqual(['sn', 'PRESENCE', 'GREATER_THEN', '3'])
    expect(filter.listNodes('CN').size()).toBe(1)
    expect(filter.getValue()).toBe('(&(|(cn=a\\2a)(mail=*@x*y))(!(sn=*))(n>=3))')
    expect(() => new Filter('(cn=')).toThrow(IllegalArgumentException)
  })

  test('match users and groups', () => {
    const user = new User('ada')
    user.getAttribs().put('Mail', new Attribute('Mail', ['a@x.test', 'b@x.test']))
    user.getGroups().add('crew')
    const ask = (text: string) => JSUtils.checkUserAgainstFilter(user, 'memberOf', text)
    expect(
      ['(mail=B@x.test)', '(memberof=crew)', '(objectClass=inetOrgPerson)', '(mail=b)', '(!(sn=x))'].map(ask),
    ).toEqual([true, true, true, false, false])
    const group = new Group('crew', '', 'crew')
    group.getMembers().add('ada')
    expect(JSUtils.checkGroupAgainstFilter(group, '(&(cn=crew)(uniqueMember=ada))')).toBe(true)
    expect(JSUtils.checkGroupAgainstFilter(group, '(uniqueMember=bob)')).toBe(false)
  })
})
