import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { sidecarScript } from '#modules/filters/sts-injector/sidecar-script.ts'
import { temporaryFolder } from '#testing/databases.ts'
import { missingPart } from '#testing/missing-part.ts'
import { findShell, type Shell, type Sidecar, type SidecarOptions, startSidecar } from '#testing/sidecar-process.ts'
import { testServerCertificate, unrelatedCertificate } from '#testing/test-certificates.ts'
import {
  startTokenEndpoint,
  type TokenAnswer,
  type TokenEndpoint,
  type TokenRequest,
  tokenLike,
} from '#testing/token-endpoint.ts'

const shells = (['dash', 'busybox'] as const).flatMap((name): Shell[] => {
  const shell = findShell(name)
  if (shell === undefined) missingPart(name, 'it is not installed, or curl is not')
  return shell === undefined ? [] : [shell]
})

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function endpoint(answer: (request: TokenRequest) => TokenAnswer, options = {}): Promise<TokenEndpoint> {
  const server = await startTokenEndpoint(answer, options)
  closers.push(() => server.close())
  return server
}

function start(options: Omit<SidecarOptions, 'script'>): Sidecar {
  const sidecar = startSidecar({ ...options, script: sidecarScript })
  closers.push(async () => {
    sidecar.destroy()
    await sidecar.ended
  })
  return sidecar
}

const soon = { timeout: 20_000, interval: 25 }
const now = (): number => Math.floor(Date.now() / 1000)
const token = (aud: unknown, seconds = 900): string =>
  tokenLike({ iss: 'https://i', aud, exp: now() + seconds, n: Math.random() })
const good = (aud: string, headers: Record<string, string> = { 'refresh-after': '600' }): TokenAnswer => ({
  headers,
  body: token(aud),
})

describe.each(shells)('the sidecar in $name', { timeout: 40_000 }, (shell) => {
  test('A3: one process writes the tokens of two endpoints, each with its own', async () => {
    const bodies = new Map([
      ['/aws/token', token('sts.amazonaws.com')],
      ['/claude/token', token(['https://api.anthropic.com'])],
    ])
    const server = await endpoint(({ path }) => ({
      headers: { 'Refresh-After': '600' },
      body: `${bodies.get(path)}\n`,
    }))
    const sidecar = start({
      shell,
      targets: {
        aws: { url: `${server.url}/aws/token`, audience: 'sts.amazonaws.com' },
        claude: { url: `${server.url}/claude/token`, audience: 'https://api.anthropic.com' },
      },
    })
    await vi.waitFor(() => expect(existsSync(`${sidecar.folder}/.ready`)).toBe(true), soon)
    expect(readFileSync(sidecar.fileOf('aws'), 'utf8')).toBe(bodies.get('/aws/token'))
    expect(readFileSync(sidecar.fileOf('claude'), 'utf8')).toBe(bodies.get('/claude/token'))
    expect(statSync(sidecar.fileOf('aws')).mode & 0o777).toBe(0o440)
    expect(readdirSync(`${sidecar.folder}/aws`)).toEqual(['token'])
    const [request] = server.requests
    expect(request?.method).toBe('POST')
    expect(request?.headers).toMatchObject({
      accept: 'application/jwt',
      'content-type': 'application/x-www-form-urlencoded',
    })
    expect(Object.fromEntries(request?.form ?? [])).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      subject_token: readFileSync(sidecar.credential, 'utf8'),
    })
    expect(server.requests).toHaveLength(2)
  })

  test('the idle sidecar has at most 4 MB', async () => {
    const server = await endpoint(() => good('a'))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(() => expect(existsSync(`${sidecar.folder}/.ready`)).toBe(true), soon)
    // A child may end while it is measured.
    const memory = await vi.waitFor(() => {
      const bytes = sidecar.memory()
      expect(bytes).toBeLessThan(4_000_000)
      return bytes
    }, soon)
    expect(memory).toBeGreaterThan(50_000)
  })

  test('D1, D2: it refreshes when the server says, and a reader never sees half a token', async () => {
    const given = new Set<string>()
    const server = await endpoint(() => {
      const body = token('a')
      given.add(body)
      return { headers: { 'refresh-after': '1' }, body }
    })
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    const read = new Set<string>()
    await vi.waitFor(
      () => {
        if (existsSync(sidecar.fileOf('a'))) read.add(readFileSync(sidecar.fileOf('a'), 'utf8'))
        expect(read.size).toBe(3)
      },
      { ...soon, interval: 1 },
    )
    for (const text of read) expect(given.has(text)).toBe(true)
  })

  test('the time until the refresh is a random part of what the server says', async () => {
    const server = await endpoint(() => good('a'))
    const names = Array.from({ length: 8 }, (_, position) => `t${position}`)
    const sidecar = start({
      shell,
      targets: Object.fromEntries(names.map((name) => [name, { url: server.url, audience: 'a' }])),
    })
    const told = (): number[] => Array.from(sidecar.log().matchAll(/next in (\d+) s/g), (match) => Number(match[1]))
    await vi.waitFor(() => expect(told()).toHaveLength(8), soon)
    const delays = told()
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(480)
    expect(Math.max(...delays)).toBeLessThanOrEqual(600)
    expect(new Set(delays).size).toBeGreaterThan(2)
  })

  test.each([
    ['absent', {}, 450, 600],
    ['no number', { 'refresh-after': '5 minutes' }, 450, 600],
    ['octal to a shell', { 'refresh-after': '0099' }, 450, 600],
    ['later than the token ends', { 'refresh-after': '9999' }, 600, 810],
    ['zero', { 'refresh-after': '0' }, 1, 1],
  ])('a refresh time that is %s', async (_, headers, least, most) => {
    const server = await endpoint(() => good('a', headers))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(() => expect(sidecar.log()).toMatch(/next in \d+ s/), soon)
    const delay = Number(/next in (\d+) s/.exec(sidecar.log())?.[1])
    expect(delay).toBeGreaterThanOrEqual(least)
    expect(delay).toBeLessThanOrEqual(most)
  })

  test('D4: what is no token for this target is not written, and the last good one stays', async () => {
    const bad: Record<string, string | Buffer> = {
      html: '<html>welcome</html>',
      empty: '',
      two: 'a.b',
      four: `${token('a')}.x`,
      lines: `${token('a')}\n${token('a')}`,
      binary: Buffer.from([0, 1, 2, 0xff]),
      other: token('b'),
      longer: token('ab'),
      expired: token('a', -10),
      endless: tokenLike({ aud: 'a' }),
      nobase64: 'a.%%%.c',
      huge: `a.${'b'.repeat(200_000)}.c`,
    }
    const server = await endpoint(({ path }) => ({
      body: bad[path.slice(1)] ?? token('a'),
      headers: { 'refresh-after': '600' },
    }))
    const targets = Object.fromEntries(
      [...Object.keys(bad), 'good'].map((name) => [name, { url: `${server.url}/${name}`, audience: 'a' }]),
    )
    const sidecar = start({ shell, targets })
    await vi.waitFor(() => expect(existsSync(sidecar.fileOf('good'))).toBe(true), soon)
    const written = Object.keys(targets).filter((name) => existsSync(sidecar.fileOf(name)))
    expect(written).toEqual(['good'])
    expect(existsSync(`${sidecar.folder}/.ready`)).toBe(false)
    expect(sidecar.log()).toContain('is not a token with the audience "a"')
  })

  test('D5: a permanent refusal ends it with a reason, after the others had their turn', async () => {
    const body = JSON.stringify({ error: 'access_denied', error_description: 'no rule\u0007 allows it' })
    const server = await endpoint(({ path }) => (path === '/no' ? { status: 403, body } : good('a')))
    const sidecar = start({
      shell,
      targets: { no: { url: `${server.url}/no`, audience: 'a' }, yes: { url: `${server.url}/yes`, audience: 'a' } },
    })
    expect(await sidecar.ended).toBe(1)
    expect(sidecar.log()).toMatch(/\/no: status 403, refused: .*access_denied/)
    expect(sidecar.log()).toMatch(/no\/token: refused for good/)
    expect(existsSync(sidecar.fileOf('yes'))).toBe(true)
    expect(existsSync(sidecar.fileOf('no'))).toBe(false)
  })

  test('400 ends it', async () => {
    const server = await endpoint(() => ({ status: 400, body: '{"error":"invalid_target"}' }))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    expect(await sidecar.ended).toBe(1)
    expect(sidecar.log()).toContain('invalid_target')
  })

  test('what may pass is tried again, and a busy server as late as it asks', async () => {
    const first: Readonly<Record<string, TokenAnswer>> = {
      'expired-credential': { status: 400, body: '{"error":"invalid_grant"}' },
      unauthorized: { status: 401 },
      'unknown-to-a-proxy': { status: 404 },
      broken: { status: 500 },
      moved: { status: 302, headers: { location: '/elsewhere' } },
      busy: { status: 429, headers: { 'retry-after': '4' } },
    }
    const of = (name: string): readonly TokenRequest[] => server.requests.filter(({ path }) => path === `/${name}`)
    const server = await endpoint(({ path }) => {
      const name = path.slice(1)
      return of(name).length === 1 ? (first[name] ?? {}) : good('a')
    })
    const names = Object.keys(first)
    const targets = Object.fromEntries(names.map((name) => [name, { url: `${server.url}/${name}`, audience: 'a' }]))
    const sidecar = start({ shell, targets })
    await vi.waitFor(() => expect(names.filter((name) => !existsSync(sidecar.fileOf(name)))).toEqual([]), soon)
    expect(names.map((name) => of(name).length)).toEqual(names.map(() => 2))
    const [refused, granted] = of('busy')
    expect((granted?.at ?? 0) - (refused?.at ?? 0)).toBeGreaterThan(2900)
    expect(of('elsewhere')).toEqual([])
  })

  test('it survives a server that is away', async () => {
    const first = await endpoint(() => good('a'))
    const port = Number(new URL(first.url).port)
    await first.close()
    const sidecar = start({ shell, targets: { a: { url: first.url, audience: 'a' } } })
    await vi.waitFor(() => expect(sidecar.log()).toContain('again'), soon)
    await endpoint(() => good('a'), { port })
    await vi.waitFor(() => expect(existsSync(sidecar.fileOf('a'))).toBe(true), soon)
  })

  test('it waits for a credential that is not there yet', async () => {
    const server = await endpoint(() => good('a'))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    writeFileSync(sidecar.credential, '')
    chmodSync(sidecar.credential, 0o600)
    await vi.waitFor(() => expect(sidecar.log() + String(server.requests.length)).not.toBe('0'), soon)
    writeFileSync(sidecar.credential, 'late')
    await vi.waitFor(() => expect(existsSync(sidecar.fileOf('a'))).toBe(true), soon)
  })

  test.each([
    ['asleep', () => good('a')],
    ['waiting for an answer', (): TokenAnswer => ({ hangs: true })],
  ])('SIGTERM ends it at once while it is %s, with nothing left over', async (_, answer) => {
    const server = await endpoint(answer)
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(() => expect(server.requests).toHaveLength(1), soon)
    await new Promise((resolve) => setTimeout(resolve, 300))
    const family = spawnSync('cat', [`/proc/${sidecar.process.pid}/task/${sidecar.process.pid}/children`], {
      encoding: 'utf8',
    })
    const children = family.stdout.trim().split(' ').filter(Boolean)
    expect(children).toHaveLength(1)
    const asked = Date.now()
    sidecar.process.kill('SIGTERM')
    expect(await sidecar.ended).toBe(0)
    expect(Date.now() - asked).toBeLessThan(2000)
    await vi.waitFor(() => expect(children.filter((pid) => existsSync(`/proc/${pid}/exe`))).toEqual([]), soon)
    expect(readdirSync(`${sidecar.folder}/a`).filter((name) => name.startsWith('.'))).toEqual([])
  })

  test('D6: other signals do not end it', async () => {
    const server = await endpoint(() => good('a', { 'refresh-after': '2' }))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(() => expect(existsSync(sidecar.fileOf('a'))).toBe(true), soon)
    for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGHUP'] as const) sidecar.process.kill(signal)
    await vi.waitFor(() => expect(server.requests.length).toBeGreaterThan(1), soon)
    expect(sidecar.process.exitCode).toBeNull()
  })

  describe('over TLS', () => {
    test.each([
      [
        'certificates that came with it',
        { STS_TRUST_FILE: '/nowhere/ca.crt', STS_CERTIFICATES: testServerCertificate },
        true,
      ],
      ['D7: no file and no certificates', { STS_TRUST_FILE: '/nowhere/ca.crt' }, false],
      [
        'certificates of somebody else',
        { STS_TRUST_FILE: '/nowhere/ca.crt', STS_CERTIFICATES: unrelatedCertificate },
        false,
      ],
      ['nothing', {}, false],
    ])('with %s', async (_, variables, trusted) => {
      const server = await endpoint(() => good('a'), { tls: true })
      const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } }, variables })
      await vi.waitFor(() => expect(sidecar.log()).toMatch(trusted ? /written/ : /certificate/), soon)
      expect(existsSync(sidecar.fileOf('a'))).toBe(trusted)
    })

    test('with all the authorities of a large organisation in the ConfigMap', async () => {
      const server = await endpoint(() => good('a'), { tls: true })
      const file = join(temporaryFolder(), 'ca.crt')
      writeFileSync(file, unrelatedCertificate.repeat(300) + testServerCertificate)
      expect(statSync(file).size).toBeGreaterThan(150_000)
      const sidecar = start({
        shell,
        targets: { a: { url: server.url, audience: 'a' } },
        variables: { STS_TRUST_FILE: file },
      })
      await vi.waitFor(() => expect(sidecar.log()).toMatch(/written/), soon)
    })
  })

  test('an answer without end, and headers that say anything, do no harm', async () => {
    const hostile = createServer((request, answer) => {
      if (request.url === '/endless') {
        answer.writeHead(200)
        const more = (): void => void (answer.destroyed || answer.write('a'.repeat(65_536), more))
        more()
        return
      }
      answer.writeHead(200, { 'refresh-after': '$(touch owned);;-5;*;`id`', 'retry-after': '9'.repeat(5000) })
      answer.end(token('a'))
    })
    await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve))
    closers.push(async () => {
      hostile.closeAllConnections()
      hostile.close()
    })
    const url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`
    const targets = {
      endless: { url: `${url}/endless`, audience: 'a' },
      headers: { url: `${url}/headers`, audience: 'a' },
    }
    const sidecar = start({ shell, targets })
    await vi.waitFor(() => expect(sidecar.log()).toMatch(/headers\/token: written, next in \d+ s/), soon)
    await vi.waitFor(() => expect(sidecar.log()).toMatch(/endless: status \S+, again/), soon)
    expect(existsSync(sidecar.fileOf('endless'))).toBe(false)
    expect(sidecar.process.exitCode).toBeNull()
    const sizes = readdirSync(sidecar.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => statSync(join(parentPath, name)).size)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(65_536)
  })

  test('what a killed one left is swept up, and readiness is earned again', async () => {
    const server = await endpoint(() => good('a'))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(() => expect(existsSync(`${sidecar.folder}/.ready`)).toBe(true), soon)
    sidecar.destroy()
    await sidecar.ended
    writeFileSync(`${sidecar.folder}/a/.token.abcdef`, 'x')
    const away = `http://127.0.0.1:1/a`
    const variables = {
      STS_TARGETS: `${server.url} ${sidecar.fileOf('a')} ${sidecar.credential} "a"\n${away} ${sidecar.fileOf('b')} ${sidecar.credential} "a"`,
      STS_READY_FILE: `${sidecar.folder}/.ready`,
    }
    const next = start({ shell, targets: {}, variables })
    await vi.waitFor(() => expect(next.log()).toContain('again'), soon)
    expect(readdirSync(`${sidecar.folder}/a`)).toEqual(['token'])
    expect(existsSync(`${sidecar.folder}/.ready`)).toBe(false)
  })

  test('without its variables it says so', async () => {
    const sidecar = start({ shell, targets: {} })
    expect(await sidecar.ended).toBe(2)
    expect(sidecar.log()).toContain('must be set')
  })
})

test('shellcheck has nothing to say', () => {
  const { error, stdout, status } = spawnSync(
    'shellcheck',
    ['--shell=sh', 'src/modules/filters/sts-injector/sidecar.sh'],
    { encoding: 'utf8' },
  )
  if (error !== undefined) {
    missingPart('shellcheck', error)
    return
  }
  expect(stdout).toBe('')
  expect(status).toBe(0)
})

test('the script that travels has no comments and fits into a pod many times', () => {
  expect(sidecarScript).not.toMatch(/^\s*#/m)
  expect(sidecarScript.length).toBeLessThan(8192)
})
