import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { errorCodes, GatewayError } from '#kernel/errors.ts'
import { type PageLook, parseColor } from '#sdk/http/page-look.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { type Color, contrast, readColor } from './colors.ts'
import { languages } from './languages.ts'
import { html, htmlErrors, notice, page } from './page.ts'
import { durationText, languageOf, textsFor } from './page-texts.ts'

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

  test.each(['red', '#12', '#1234567', '#12345g', '', '#123; } *', 'url(x)'])('%j is not a color', (written) => {
    expect(() => parseColor(written)).toThrow('must be #rgb or #rrggbb')
    expect(() => notice(200, 'T', 'x', { theme: { main: written, dark: '#000' } })).toThrow()
  })

  test('shows only the public text of a failure and the id of the request', () => {
    const { body } = htmlErrors(new GatewayError('INTERNAL', 'the database password is x'), 'request-7')
    expect(body).toContain('An internal error occurred. (request-7)')
    expect(body).not.toContain('password')
  })
})

describe('the reader of a page', () => {
  const reader = (headers: Record<string, string>, look?: PageLook) => ({ ...fakeRequest({ headers }), look })

  test('gets it in the language chosen in the portal, or in one that the browser accepts', () => {
    expect(languageOf()).toBe('en')
    expect(languageOf(reader({ 'accept-language': 'pt, de-AT;q=0.9, en;q=0.5' }))).toBe('de')
    expect(languageOf(reader({ 'accept-language': 'de', cookie: 'a=b; gatehouse-language=ja' }))).toBe('ja')
    expect(languageOf(reader({ 'accept-language': 'fr', cookie: 'gatehouse-language=__proto__' }))).toBe('fr')
    const { body } = htmlErrors(new GatewayError('NOT_FOUND', 'x'), 'r1', reader({ 'accept-language': 'de' }))
    expect(body).toContain('<html lang="de">')
    expect(body).toContain('Unter dieser Adresse gibt es nichts. (r1)')
  })

  test('sees the scheme chosen in the portal', () => {
    const bodyFor = (cookie: string): string => notice(200, 'T', 'x', { request: reader({ cookie }) }).body
    expect(bodyFor('gatehouse-color-scheme=dark')).toContain('<html lang="en" data-scheme="dark">')
    expect(bodyFor('gatehouse-color-scheme="><script>')).toContain('<html lang="en">')
  })

  test('sees name, logo and colors of the portal, and no hostile name becomes markup', () => {
    const look = { name: 'Acme <b>', logo: '/portal/assets/logo.svg', theme: { main: '#ffff00', dark: '#cccc00' } }
    const made = notice(200, 'Sign in', 'x', { request: reader({}, look) })
    expect(made.body).toContain('<title>Sign in · Acme &lt;b&gt;</title>')
    expect(made.body).toContain(
      '<header><img src="/portal/assets/logo.svg" alt=""><span>Acme &lt;b&gt;</span></header>',
    )
    expect(policyOf(made)).toContain("img-src 'self'")
    expect(made.body).toContain('--main: #ffff00; --on-main: #000000')
    const data = notice(200, 'T', 'x', { request: reader({}, { logo: 'data:image/png;base64,AA' }) })
    expect(policyOf(data)).toContain('img-src data:')
  })

  test('can read texts in every color', () => {
    const digits = fc.integer({ min: 0, max: 0xffffff }).map((n) => `#${n.toString(16).padStart(6, '0')}`)
    const color = (style: string, name: string): Color =>
      readColor(new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(style)?.[1] ?? '') ?? [0, 0, 0]
    fc.assert(
      fc.property(digits, digits, digits, (main, dark, error) => {
        const { body } = notice(200, 'T', 'x', { theme: { main, dark, error } })
        const [, light = '', night = ''] = body.split(/(?:^|\s):root[^{]*\{/)
        for (const style of [light, night]) {
          for (const [text, background] of [
            ['text', 'page'],
            ['quiet', 'surface'],
            ['link', 'surface'],
            ['error', 'surface'],
            ['on-main', 'main'],
            ['on-dark', 'dark'],
          ] as const) {
            expect(contrast(color(style, text), color(style, background))).toBeGreaterThanOrEqual(4.5)
          }
        }
      }),
      { numRuns: 30 },
    )
  })

  test('reads times to wait as words', () => {
    expect(durationText(1)).toBe('1 second')
    expect(durationText(300, reader({ 'accept-language': 'de' }))).toBe('5 Minuten')
    expect(durationText(91)).toBe('2 minutes')
  })

  test('reads the same English as clients of the APIs', () => {
    const t = textsFor()
    expect([t('error.accessDenied'), t('error.internal'), t('error.notFound')]).toEqual([
      errorCodes.ACCESS_DENIED.text,
      errorCodes.INTERNAL.text,
      errorCodes.NOT_FOUND.text,
    ])
  })

  test.each(Object.keys(languages))('finds values where the texts of %s have places for them', (language) => {
    const t = textsFor(reader({ 'accept-language': language }))
    expect(t('login.tooMany', { time: '9' })).toContain('9')
    expect(t('login.tooMany', {})).toContain('{time}')
  })
})
