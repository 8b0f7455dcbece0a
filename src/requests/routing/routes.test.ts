import { describe, expect, test } from 'vitest'
import { compilePattern } from '#kernel/text/safe-pattern.ts'
import { jsonErrors } from '#sdk/http/error-format.ts'
import { type Application, Routes, type Url } from './routes.ts'

function url(at: string, hosts: string[], uri: string, regex = false): Url {
  const results = { auSuccess: undefined, auFail: undefined, azSuccess: undefined, azFail: undefined }
  const pattern = regex ? compilePattern(uri) : undefined
  const rest = { chain: undefined, rules: [], filters: [], errors: jsonErrors, takesForms: false, results }
  return { at, hosts, uri, pattern, ...rest }
}

const application = (name: string, ...urls: Url[]): Application => ({
  name,
  azTimeoutMillis: 0,
  cookies: undefined,
  urls,
})

describe('Routes', () => {
  const routes = new Routes([
    application('a', url('scim', ['one.test'], '/api/scim'), url('root', ['one.test'], '/')),
    application('b', url('admin', ['one.test'], '/api/scim/admin/'), url('any', ['*'], '/api')),
    application('c', url('digits', ['two.test'], '/n/[0-9]+', true), url('two', ['two.test'], '/n/7/x')),
  ])
  const at = (host: string, path: string): string | undefined => routes.find(host, path)?.url.at

  test('takes the longest uri', () => {
    expect(at('one.test', '/api/scim/Users/1')).toBe('scim')
    expect(at('one.test', '/api/scim/admin/x')).toBe('admin')
    expect(at('one.test', '/api/scim/admin')).toBe('admin')
  })

  test('matches whole segments only', () => {
    expect(at('one.test', '/api/scimitar')).toBe('root')
  })

  test('prefers the host to the star, even with a shorter uri', () => {
    expect(at('one.test', '/api/other')).toBe('root')
    expect(at('three.test', '/api/other')).toBe('any')
    expect(at('three.test', '/')).toBeUndefined()
  })

  test('tries regular expressions after prefixes, on the whole path', () => {
    expect(at('two.test', '/n/12')).toBe('digits')
    expect(at('two.test', '/n/12/x')).toBeUndefined()
    expect(at('two.test', '/n/7/x/y')).toBe('two')
  })

  test('a path of thousands of slashes costs no more than another', () => {
    const started = performance.now()
    for (let i = 0; i < 500; i++) expect(at('one.test', `/api/scim/${'/'.repeat(8000)}`)).toBe('scim')
    expect(performance.now() - started).toBeLessThan(8_000)
    expect(at('one.test', `/api/scim/admi/${'n/'.repeat(20)}`)).toBe('scim')
    expect(at('three.test', '//'.repeat(20))).toBeUndefined()
  })

  test('returns the mount without a trailing slash', () => {
    expect(routes.find('one.test', '/api/scim/admin/x')?.mount).toBe('/api/scim/admin')
    expect(routes.find('one.test', '/x')?.mount).toBe('')
  })

  test('an expression defines its mount by a group of that name, in whole segments from the start, or has none', () => {
    const tenants = new Routes([
      application(
        't',
        url('tenant', ['t.test'], '(?<mount>/t/[a-z]+/scim)(/.*)?', true),
        url('none', ['t.test'], '/u/[a-z]+/.*', true),
        url('late', ['t.test'], '/v(?<mount>/[a-z]+)/.*', true),
        url('half', ['t.test'], '(?<mount>/w/[a-z])[a-z]*', true),
      ),
    ])
    const mount = (path: string): string | undefined => tenants.find('t.test', path)?.mount
    expect(mount('/t/acme/scim/Users/1')).toBe('/t/acme/scim')
    expect(mount('/t/zenith/scim')).toBe('/t/zenith/scim')
    expect(mount('/t/acme/scimitar')).toBeUndefined()
    expect(mount('/u/acme/Users')).toBe('')
    expect(mount('/v/acme/Users')).toBe('')
    expect(mount('/w/acme')).toBe('')
  })

  test('pages of a host look like the first portal there, and then like the one of every host', () => {
    const looking = (hosts: string[], ...looks: NonNullable<Url['looks']>): Url => ({ ...url('x', hosts, '/'), looks })
    const theme = { main: '#123', dark: '#000' }
    const sites = new Routes([
      application('a', looking(['*'], { name: 'Everywhere', logo: '/logo.svg' })),
      application('b', looking(['one.test'], { theme }, { name: 'One' }), looking(['one.test'], { name: 'Later' })),
    ])
    expect(sites.look('one.test')).toEqual({ name: 'One', logo: '/logo.svg', theme })
    expect(sites.look('two.test')).toEqual({ name: 'Everywhere', logo: '/logo.svg' })
    expect(routes.look('one.test')).toBeUndefined()
  })
})
