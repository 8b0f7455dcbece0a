import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import type { PortalSettings } from '#features/portal/contract/portal.ts'
import { Issues } from '#kernel/issues.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import portal, { assetAnswer, portalPage, readBuiltPortal } from './portal-site.ts'

interface Asked {
  readonly pathInfo?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly mount?: string
}

const params = { main: '/portal/main', sessionCheck: '/check/', title: 'Example' }
const page = { accept: 'text/html,*/*' }

async function ask(
  { pathInfo = '', method = 'GET', headers = {}, mount = '/portal' }: Asked,
  more: Readonly<Record<string, string>> = {},
): Promise<GatewayResponse> {
  const prepared = portal.prepare(fakeParams({ ...params, ...more }), noIssues(), fakeParseContext())
  const filter = await prepared.create(fakeModuleHost({}))
  const request = fakeRequest({ method, headers, url: `http://localhost${mount}${pathInfo}` })
  const exchange = { request, application: 'portal', mount, pathInfo, subject: subject('uid=ada,o=Tremolo') }
  return filter.handle(exchange, async () => ({ status: 404, headers: {} }))
}

const settingsOf = ({ body }: GatewayResponse): PortalSettings =>
  JSON.parse(/<script id="settings" type="application\/json">(.*?)<\/script>/s.exec(String(body))?.[1] ?? '')

describe('the page', () => {
  test('is not cached, loads nothing from elsewhere, and knows its mount', async () => {
    const answer = await ask({})
    expect(answer.status).toBe(200)
    expect(answer.headers['cache-control']).toBe('no-store')
    const { nonce, ...settings } = settingsOf(answer)
    expect(settings).toEqual({
      base: '/portal',
      title: 'Example',
      apis: { main: '/portal/main', sessionCheck: '/check' },
    })
    const policy = String(answer.headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain(`style-src 'self' 'nonce-${nonce}'`)
    expect(policy).toContain("script-src 'self'")
    expect(policy).not.toContain('unsafe')
    expect(String(answer.body)).not.toContain('="./')
    expect(String(answer.body)).toMatch(/src="\/portal\/assets\/[\w-]+\.js"/)
    expect(String(answer.body)).not.toMatch(/<script(?![^>]*(?:src=|type="application\/json"))/)
  })

  test('differs for each visit', async () => {
    expect(settingsOf(await ask({})).nonce).not.toBe(settingsOf(await ask({})).nonce)
  })

  test('answers every navigation below the mount, and nothing else', async () => {
    expect((await ask({ pathInfo: '/requests/1', headers: page })).status).toBe(200)
    expect((await ask({ pathInfo: '/requests/1', headers: { 'sec-fetch-mode': 'navigate' } })).status).toBe(200)
    await expect(ask({ pathInfo: '/robots.txt' })).rejects.toMatchObject({ status: 404 })
    await expect(ask({ method: 'POST' })).rejects.toMatchObject({ status: 405 })
  })

  test('is one page over the APIs Main, Register and Token', async () => {
    const apis = { register: '/portal/register', token: '/portal/token' }
    const shown = async (pathInfo: string) => {
      const answer = await ask({ pathInfo, headers: page }, apis)
      return String(answer.body).replaceAll(settingsOf(answer).nonce, '')
    }
    const first = await shown('')
    for (const path of ['/register', '/token', '/requests/1', '/reports']) expect(await shown(path)).toBe(first)
    expect(settingsOf(await ask({}, apis)).apis).toEqual({ main: '/portal/main', sessionCheck: '/check', ...apis })
  })

  test('works at the root', async () => {
    const answer = await ask({ mount: '' })
    expect(settingsOf(answer).base).toBe('')
    expect(String(answer.body)).toMatch(/src="\/assets\/[\w-]+\.js"/)
  })

  test('no value ends the block that contains it', () => {
    const template = '<title>x</title><script id="settings" type="application/json"></script><a href="./b">'
    const hostile = '</script><script>alert(1)</script>$&"'
    const { body } = portalPage(template, { base: '/"><b>', title: hostile, apis: { main: hostile } }, 'none')
    expect(String(body)).not.toContain('<script>alert')
    expect(String(body)).not.toContain('"><b>/')
    expect(settingsOf({ status: 200, headers: {}, body: String(body) }).title).toBe(hostile)
  })
})

describe('assets', () => {
  const nameOf = async (): Promise<string> =>
    /src="\/portal(\/assets\/[\w-]+\.js)"/.exec(String((await ask({})).body))?.[1] ?? ''

  test('are cached forever, and sent as small as the browser accepts', async () => {
    const pathInfo = await nameOf()
    const plain = await ask({ pathInfo })
    const br = await ask({ pathInfo, headers: { 'accept-encoding': 'gzip, deflate, br' } })
    const gzip = await ask({ pathInfo, headers: { 'accept-encoding': 'gzip, br;q=0' } })
    expect(plain.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
    })
    expect([plain, br, gzip].map(({ headers }) => headers['content-encoding'])).toEqual([undefined, 'br', 'gzip'])
    expect(brotliDecompressSync(br.body as Buffer).equals(plain.body as Buffer)).toBe(true)
    expect(gunzipSync(gzip.body as Buffer).equals(plain.body as Buffer)).toBe(true)
  })

  test('are unpacked once for all clients that accept no compression', async () => {
    const asset = { type: 'text/css', gzip: gzipSync('a {}') }
    const [first, second] = await Promise.all([assetAnswer(asset, ''), assetAnswer(asset, 'identity')])
    expect(String(first.body)).toBe('a {}')
    expect(second.body).toBe(first.body)
  })

  test('are public, and nothing else is', async () => {
    const { openPaths = [] } = portal.prepare(fakeParams(params), noIssues(), fakeParseContext())
    expect(openPaths).toEqual(['/assets/'])
    expect((await nameOf()).startsWith('/assets/')).toBe(true)
  })

  test('that do not exist never return the page, not even for a navigation, and reach no file', async () => {
    for (const pathInfo of ['/assets/none.js', '/assets/', '/assets/../index.html', '/assets/..%2findex.html']) {
      await expect(ask({ pathInfo, headers: page })).rejects.toMatchObject({ status: 404 })
    }
  })
})

describe('parameters', () => {
  const issuesOf = (given: Readonly<Record<string, string>>): number => {
    const issues = new Issues()
    portal.prepare(fakeParams(given), issues, fakeParseContext())
    return issues.list.length
  }

  test('are paths of this host', () => {
    expect(issuesOf({ main: '/portal/main' })).toBe(0)
    const hostile = ['https://evil.example.com/', '//evil.example.com', 'main', '/a b', '/a/../b', '/<script>']
    expect(hostile.map((main) => issuesOf({ main })).filter((count) => count === 0)).toEqual([])
    expect(issuesOf({})).toBeGreaterThan(0)
  })
})

describe('the logo', () => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
  const uri = `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`

  test.each([
    ['a file', 'logo.svg'],
    ['a data URI', `data:image/svg+xml,${encodeURIComponent(svg)}`],
  ])('from %s is part of the settings, and of the look of other pages', async (_, logo) => {
    const context = { ...fakeParseContext('/conf'), readFile: () => Buffer.from(svg).toString('base64') }
    const prepared = portal.prepare(fakeParams({ ...params, logo }), noIssues(), context)
    const filter = await prepared.create(fakeModuleHost({}))
    const request = fakeRequest({ url: 'http://localhost/portal' })
    const exchange = { request, application: 'portal', mount: '/portal', pathInfo: '', subject: subject('uid=ada,o=T') }
    const answer = await filter.handle(exchange, async () => ({ status: 404, headers: {} }))
    expect(settingsOf(answer).logo).toBe(uri)
    expect(prepared.look).toEqual({ logo: uri })
  })

  test.each([
    ['data:text/html,<b>', 'is not a PNG'],
    ['https://example.com/logo.svg', 'no such file'],
    ['page.html', 'is not a PNG'],
  ])('%s is refused', (logo, message) => {
    const readFile = (file: string): string => {
      if (file !== '/conf/page.html') throw new Error('no such file')
      return Buffer.from('<html></html>').toString('base64')
    }
    const issues = new Issues()
    portal.prepare(fakeParams({ ...params, logo }), issues, { ...fakeParseContext('/conf'), readFile })
    expect(issues.list.map(({ message: text }) => text)).toEqual([expect.stringContaining(message)])
  })
})

describe('the build', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-portal-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  test('must exist', async () => {
    await expect(readBuiltPortal(`${folder}/`)).rejects.toThrow('npm ci')
  })

  test('is read with its compressed copies; other files are not served', async () => {
    await mkdir(join(folder, 'assets'))
    for (const name of ['a-1.js', 'a-1.js.br', 'b-2.css', 'notes.exe'])
      writeFileSync(join(folder, 'assets', name), name)
    writeFileSync(join(folder, 'index.html'), '<title></title>')
    const { assets } = await readBuiltPortal(`${folder}/`)
    expect([...assets.keys()].sort()).toEqual(['a-1.js', 'b-2.css'])
    expect(assets.get('a-1.js')?.br?.toString()).toBe('a-1.js.br')
    expect(assets.get('b-2.css')?.gzip).toBe(undefined)
  })
})
