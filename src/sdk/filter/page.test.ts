import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { html, htmlErrors, notice, page, parseColour } from '#sdk/filter/page.ts'

const policyOf = ({ headers }: ReturnType<typeof page>): string => String(headers['content-security-policy'])

describe('a page', () => {
  test('allows the style that is on it, and nothing else', () => {
    const plain = notice(200, 'Title', 'Text', { theme: { main: '#123', dark: '#456789' } })
    const style = /<style>([^<]*)<\/style>/.exec(plain.body)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    expect(policyOf(plain)).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    )
    expect(policyOf(page(200, 'T', html``, { script: '/auth/x/script.js' }))).toContain("script-src 'self'")
    expect(policyOf(page(200, 'T', html``, { formsLeadAnywhere: true }))).not.toContain('form-action')
  })

  test('has no value in it that is not escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...`<>"'&=/ ax`) }), (hostile) => {
        const { body } = page(200, hostile, html`<p title="${hostile}">${hostile}</p>`, { refresh: `/${hostile}` })
        const tags = body.replace(/<style>[^<]*<\/style>/, '').match(/<[^>]*>/g) ?? []
        expect(tags.map((tag) => tag.replace(/"[^"]*"/g, '""'))).toEqual([
          '<!doctype html>',
          '<html lang="">',
          '<head>',
          '<meta charset="">',
          '<meta name="" content="">',
          '<meta name="" content="">',
          '<meta http-equiv="" content="">',
          '<title>',
          '</title>',
          '</head>',
          '<body>',
          '<main>',
          '<h1>',
          '</h1>',
          '<p title="">',
          '</p>',
          '</main>',
          '</body>',
          '</html>',
        ])
      }),
    )
  })

  test.each(['red', '#12', '#1234567', '#12345g', '', '#123; } *', 'url(x)'])('%j is not a colour', (written) => {
    expect(() => parseColour(written)).toThrow('must be #rgb or #rrggbb')
    expect(() => notice(200, 'T', 'x', { theme: { main: written, dark: '#000' } })).toThrow()
  })

  test('shows only the public text of a failure and the id of the request', () => {
    const { body } = htmlErrors(new GatewayError('INTERNAL', 'the database password is x'), 'request-7')
    expect(body).toContain('An internal error occurred. (request-7)')
    expect(body).not.toContain('password')
  })
})
