import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { escapeHtml } from '#kernel/text/html.ts'
import { checkMail, isMailAddress, isMailSubject, type StepMail } from './mail.ts'
import { htmlOfText, textOfHtml } from './mail-body.ts'

describe('an address', () => {
  test.each(['ada@example.com', "o'hara+x@sub.example.co.uk", 'ünï@exämple.com', 'a@b'])('is %j', (text) => {
    expect(isMailAddress(text)).toBe(true)
  })

  test.each([
    '',
    'ada',
    '@example.com',
    'ada@',
    'a@b@c',
    'Ada <ada@example.com>',
    'ada@example.com, eve@example.com',
    'ada@example.com;eve@example.com',
    'ada@example.com\r\nBcc: eve@example.com',
    'ada@example.com\nRCPT TO:<eve@example.com>',
    'ada@example.com\u0000',
    'ada @example.com',
    '"a b"@example.com',
    `${'a'.repeat(65)}@example.com`,
    `a@${'b'.repeat(254)}`,
  ])('is not %j', (text) => {
    expect(isMailAddress(text)).toBe(false)
  })
})

test('no accepted address or subject has a line break or control character', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const accepted = isMailAddress(text) || isMailAddress(`a${text}@b`) || isMailSubject(text)
      return !accepted || !/[\r\n\0\u0085]/.test(text)
    }),
  )
})

test('an invalid mail is rejected', () => {
  const mail: StepMail = { recipient: 'a@b', subject: 's', text: 't' }
  expect(() => checkMail(mail)).not.toThrow()
  const wrong: readonly Partial<StepMail>[] = [
    { recipient: 'nobody' },
    { subject: 'Hello\r\nBcc: eve@example.com' },
    { subject: 'Hello\nX-Evil: 1' },
    { subject: 'x'.repeat(501) },
    { text: 'x'.repeat(600_000), html: 'x'.repeat(600_000) },
  ]
  for (const change of wrong) {
    expect(() => checkMail({ ...mail, ...change })).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
  }
})

describe('the two forms of a mail', () => {
  test('text as HTML has no markup of its own', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const inner = htmlOfText(text).replace(/^<div style="white-space: pre-wrap">|<\/div>$/g, '')
        return !/[<>"']/.test(inner) && inner === escapeHtml(text)
      }),
    )
  })

  test('HTML as text keeps lines and addresses, and drops tags, styles and scripts', () => {
    const html =
      '<html><head><title>T</title><style>p { color: red }</style></head><body><p>Hello <b>Ada</b>,</p>' +
      '<p>see <a href="https://example.com/?a=1&amp;b=2">this</a>.<br>1 &lt; 2</p><script>alert(1)</script></body></html>'
    expect(textOfHtml(html)).toBe('Hello Ada,\n\nsee <https://example.com/?a=1&b=2> this.\n1 < 2')
    expect(textOfHtml('<a href="javascript:alert(1)">x</a>')).toBe('x')
    expect(textOfHtml('a < b and no end')).toBe('a < b and no end')
  })

  test('any HTML is turned into text without hanging', () => {
    const hostile = '<'.repeat(200_000)
    expect(textOfHtml(hostile)).toBe(hostile)
    fc.assert(fc.property(fc.string(), (text) => typeof textOfHtml(text) === 'string'))
  })
})
