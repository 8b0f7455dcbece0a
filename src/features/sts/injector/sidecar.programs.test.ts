import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test as sequential, vi } from 'vitest'
import { testServerCertificate, unrelatedCertificate } from '#testing/gateway/test-certificates.ts'
import { isInstalled } from '#testing/run/installed.ts'
import {
  findShell,
  type NodeClock,
  type Shell,
  type Sidecar,
  type SidecarOptions,
  startNodeClock,
  startSidecar,
} from '#testing/sts/sidecar-process.ts'
import {
  startTokenEndpoint,
  type TokenAnswer,
  type TokenEndpoint,
  type TokenRequest,
  tokenLike,
} from '#testing/sts/token-endpoint.ts'
import { sidecarScript } from './injector.ts'

const shells = (isInstalled('curl') ? (['dash', 'busybox'] as const) : []).flatMap((name): Shell[] => {
  const shell = isInstalled(name) ? findShell(name) : undefined
  return shell === undefined ? [] : [shell]
})

interface Scene {
  /** Runs after the test. */
  later(close: () => unknown): void
  temporaryFolder(): string
  endpoint(answer: (request: TokenRequest) => TokenAnswer, options?: object): Promise<TokenEndpoint>
  start(options: Omit<SidecarOptions, 'script'>): Sidecar
  startClock(factor?: number): NodeClock
}

/** Each test ends its own processes, since most run at the same time: they wait for sleeping sidecars. */
const test = sequential.extend<{ scene: Scene }>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of the fixtures that it needs.
  scene: async ({}, use) => {
    const closers: (() => unknown)[] = []
    const later = (close: () => unknown): void => void closers.push(close)
    await use({
      later,
      temporaryFolder: () => {
        const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
        later(() => rmSync(folder, { recursive: true, force: true }))
        return folder
      },
      endpoint: async (answer, options = {}) => {
        const server = await startTokenEndpoint(answer, options)
        later(() => server.close())
        return server
      },
      start: (options) => {
        const sidecar = startSidecar({ ...options, script: sidecarScript })
        later(() => {
          sidecar.destroy()
          return sidecar.ended
        })
        return sidecar
      },
      startClock: (factor) => {
        const clock = startNodeClock(factor)
        later(() => clock.stop())
        return clock
      },
    })
    for (const close of closers) await close()
  },
})

const soon = { timeout: 20_000, interval: 25 }
const now = (): number => Math.floor(Date.now() / 1000)
const token = (aud: unknown, seconds = 900): string =>
  tokenLike({ iss: 'https://i', aud, iat: now(), exp: now() + seconds, n: Math.random() })
const good = (aud: string, headers: Record<string, string> = { 'refresh-after': '600' }): TokenAnswer => ({
  headers,
  body: token(aud),
})

describe.concurrent.each(shells)('the sidecar in $name', { timeout: 40_000 }, (shell) => {
  test('A3: one process writes the tokens of two endpoints, each with its own', async ({
    scene: { endpoint, start },
  }) => {
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
    await vi.waitFor(async () => expect(await sidecar.probe()).toEqual({ ready: true, output: '' }), soon)
    expect(readFileSync(sidecar.fileOf('aws'), 'utf8')).toBe(bodies.get('/aws/token'))
    expect(readFileSync(sidecar.fileOf('claude'), 'utf8')).toBe(bodies.get('/claude/token'))
    expect(statSync(sidecar.fileOf('aws')).mode & 0o777).toBe(0o440)
    expect(readdirSync(`${sidecar.folder}/aws`).sort()).toEqual(['status.json', 'token'])
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

  test.for([
    '{"aud":"a","iat":0899,"exp":0999999999}',
    '{"aud":"a","iat":1,"exp":09}',
    '{"aud":"a","iat":-1,"exp":-2}',
    '{"aud":"a","iat":1e9,"exp":1e10}',
    '{"aud":"a","iat":"$(exit 7)","exp":"`exit 7`"}',
    '{"aud":"a","exp":999999999999999999999}',
    '{"aud":"a","exp":}',
  ] as const)(
    'survives a token with the claims %s, and accepts the next one',
    async (claims, { scene: { endpoint, start } }) => {
      const hostile = ['{"alg":"RS256"}', claims].map((part) => Buffer.from(part).toString('base64url')).join('.')
      let asked = 0
      const headers = { 'refresh-after': '1e9;\t-5', 'retry-after': '-1' }
      const server = await endpoint(() => (++asked === 1 ? { headers, body: `${hostile}.sig` } : good('a')))
      const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
      await vi.waitFor(async () => expect(await sidecar.probe()).toEqual({ ready: true, output: '' }), soon)
      expect(sidecar.log()).toContain('bad-token: the answer is not a token')
    },
  )

  test('a full volume does not end it, and its status has no token that it did not write', async ({
    scene: { endpoint, start, temporaryFolder },
  }) => {
    const server = await endpoint(() => good('a'))
    const targets = { a: { url: server.url, audience: 'a' } }
    const volume = temporaryFolder()
    const trust = join(volume, '.trust')
    symlinkSync('/dev/full', trust)
    const variables = { STS_TRUST_FILE: '/nowhere', STS_CERTIFICATES: 'x', STS_READY_FILE: join(volume, '.ready') }
    const full = start({ shell, targets, variables })
    const unwritable = start({ shell, targets, variables: { STS_FILE_MODE: 'none' } })
    await vi.waitFor(() => {
      for (const { log } of [full, unwritable]) expect(log()).toContain('not-writable: ')
      for (const { statusOf } of [full, unwritable]) expect(statusOf('a').failures).toBeGreaterThan(1)
    }, soon)
    expect(unwritable.statusOf('a')).toMatchObject({ expires: 0, lastSuccess: 0, lastError: 'not-writable' })
    rmSync(trust)
    await vi.waitFor(() => expect(full.statusOf('a').failures).toBe(0), soon)
  })

  test('the idle sidecar has at most 4 MB', async ({ scene: { endpoint, start } }) => {
    const server = await endpoint(() => good('a'))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(async () => expect(await sidecar.probe()).toEqual({ ready: true, output: '' }), soon)
    // A child may end while it is measured.
    const memory = await vi.waitFor(() => {
      const bytes = sidecar.memory()
      expect(bytes).toBeLessThan(4_000_000)
      return bytes
    }, soon)
    expect(memory).toBeGreaterThan(50_000)
  })

  test('D1, D2: it refreshes when the server says, and a reader never sees a partial token', async ({
    scene: { endpoint, start },
  }) => {
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

  test('the time until the refresh is a random part of what the server says', async ({
    scene: { endpoint, start },
  }) => {
    const server = await endpoint(() => good('a'))
    const names = Array.from({ length: 8 }, (_, position) => `t${position}`)
    const sidecar = start({
      shell,
      targets: Object.fromEntries(names.map((name) => [name, { url: server.url, audience: 'a' }])),
    })
    const reported = (): number[] => Array.from(sidecar.log().matchAll(/next in (\d+) s/g), (match) => Number(match[1]))
    await vi.waitFor(() => expect(reported()).toHaveLength(8), soon)
    const delays = reported()
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(480)
    expect(Math.max(...delays)).toBeLessThanOrEqual(600)
    expect(new Set(delays).size).toBeGreaterThan(2)
  })

  test.for([
    ['absent', {}, 450, 600],
    ['no number', { 'refresh-after': '5 minutes' }, 450, 600],
    ['octal to a shell', { 'refresh-after': '0099' }, 450, 600],
    ['later than the token ends', { 'refresh-after': '9999' }, 600, 810],
    ['zero', { 'refresh-after': '0' }, 1, 1],
  ] as const)('a refresh time that is %s', async ([_, headers, least, most], { scene: { endpoint, start } }) => {
    const server = await endpoint(() => good('a', headers))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(() => expect(sidecar.log()).toMatch(/next in \d+ s/), soon)
    const delay = Number(/next in (\d+) s/.exec(sidecar.log())?.[1])
    expect(delay).toBeGreaterThanOrEqual(least)
    expect(delay).toBeLessThanOrEqual(most)
  })

  test('D4: a token for another target is not written, and the last valid one stays', async ({
    scene: { endpoint, start },
  }) => {
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
    expect((await sidecar.probe()).ready).toBe(false)
    expect(sidecar.log()).toContain('is not a token with the audience "a"')
  })

  const denied = JSON.stringify({ error: 'access_denied', error_description: 'no rule\u0007 allows it' })

  test('D5: one rejected endpoint does not stop the others, and the probe names it', async ({
    scene: { endpoint, start },
  }) => {
    const server = await endpoint(({ path }) =>
      path === '/no' ? { status: 403, body: denied } : good('a', { 'refresh-after': '1' }),
    )
    const sidecar = start({
      shell,
      targets: { no: { url: `${server.url}/no`, audience: 'a' }, yes: { url: `${server.url}/yes`, audience: 'a' } },
    })
    const of = (path: string) => server.requests.filter((request) => request.path === path).length
    await vi.waitFor(() => expect(of('/yes')).toBeGreaterThan(2), soon)
    expect(of('/no')).toBe(1)
    expect(sidecar.process.exitCode).toBeNull()
    expect(sidecar.log()).toMatch(/\/no: refused-403-access_denied: no rule/)
    expect(await sidecar.probe()).toEqual({
      ready: false,
      output: `${sidecar.fileOf('no')}: no valid token; last error: refused-403-access_denied`,
    })
    expect(sidecar.statusOf('no')).toEqual({
      lastSuccess: 0,
      expires: 0,
      failures: 1,
      lastError: 'refused-403-access_denied',
    })
    const status = sidecar.statusOf('yes')
    expect(status).toMatchObject({ failures: 0, lastError: '-' })
    expect(status.expires - status.lastSuccess).toBeGreaterThan(880)
    expect(existsSync(sidecar.fileOf('no'))).toBe(false)
  })

  test('it ends with the reason if every endpoint rejects', async ({ scene: { endpoint, start } }) => {
    const server = await endpoint(({ path }) =>
      path === '/b' ? { status: 403, body: denied } : { status: 400, body: '{"error":"invalid_target"}' },
    )
    const sidecar = start({
      shell,
      targets: { a: { url: `${server.url}/a`, audience: 'a' }, b: { url: `${server.url}/b`, audience: 'a' } },
    })
    expect(await sidecar.ended).toBe(1)
    expect(sidecar.log()).toContain('400-invalid_target')
    expect(sidecar.log()).toMatch(/refused for good; change the rules/)
  })

  test('it never logs any part of a token', async ({ scene: { endpoint, start } }) => {
    const server = await endpoint(({ path, form }) => {
      const given = form.get('subject_token') ?? ''
      if (path === '/other') return { body: token('other') }
      if (path === '/body') return { status: 500, body: `${given} is bad` }
      return { status: 401, body: JSON.stringify({ error: 'invalid_token', error_description: `not ${given}` }) }
    })
    const paths = ['other', 'body', 'echo']
    const targets = Object.fromEntries(paths.map((name) => [name, { url: `${server.url}/${name}`, audience: 'a' }]))
    const sidecar = start({ shell, targets })
    writeFileSync(sidecar.credential, token('gatehouse-sts'))
    await vi.waitFor(() => expect(server.requests.length).toBeGreaterThan(5), soon)
    expect(sidecar.log()).toMatch(/401-invalid_token/)
    expect(sidecar.log()).not.toContain('eyJ')
  })

  test('it retries temporary failures, and obeys the Retry-After of a busy server', async ({
    scene: { endpoint, start },
  }) => {
    const first: Readonly<Record<string, TokenAnswer>> = {
      'expired-credential': { status: 400, body: '{"error":"invalid_request"}' },
      'expired-credential-at-an-older-replica': { status: 400, body: '{"error":"invalid_grant"}' },
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
    expect((granted?.at ?? 0) - (refused?.at ?? 0)).toBeGreaterThan(1900)
    expect(of('elsewhere')).toEqual([])
  })

  test('it survives a server that is down', async ({ scene: { endpoint, start } }) => {
    const first = await endpoint(() => good('a'))
    const port = Number(new URL(first.url).port)
    await first.close()
    const sidecar = start({ shell, targets: { a: { url: first.url, audience: 'a' } } })
    await vi.waitFor(() => expect(sidecar.log()).toContain('again'), soon)
    await endpoint(() => good('a'), { port })
    await vi.waitFor(() => expect(existsSync(sidecar.fileOf('a'))).toBe(true), soon)
  })

  test('it waits for a missing credential', async ({ scene: { endpoint, start } }) => {
    const server = await endpoint(() => good('a'))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    writeFileSync(sidecar.credential, '')
    chmodSync(sidecar.credential, 0o600)
    await vi.waitFor(() => expect(sidecar.log() + String(server.requests.length)).not.toBe('0'), soon)
    writeFileSync(sidecar.credential, 'late')
    await vi.waitFor(() => expect(existsSync(sidecar.fileOf('a'))).toBe(true), soon)
  })

  test.for([
    ['asleep', () => good('a')],
    ['waiting for an answer', (): TokenAnswer => ({ hangs: true })],
  ] as const)(
    'SIGTERM ends it at once while it is %s, and leaves nothing behind',
    async ([_, answer], { scene: { endpoint, start } }) => {
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
      expect(Date.now() - asked).toBeLessThan(5000)
      await vi.waitFor(() => expect(children.filter((pid) => existsSync(`/proc/${pid}/exe`))).toEqual([]), soon)
      expect(readdirSync(`${sidecar.folder}/a`).filter((name) => name.startsWith('.'))).toEqual([])
    },
  )

  test('D6: other signals do not end it', async ({ scene: { endpoint, start } }) => {
    const server = await endpoint(() => good('a', { 'refresh-after': '2' }))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(() => expect(existsSync(sidecar.fileOf('a'))).toBe(true), soon)
    for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGHUP'] as const) sidecar.process.kill(signal)
    await vi.waitFor(() => expect(server.requests.length).toBeGreaterThan(1), soon)
    expect(sidecar.process.exitCode).toBeNull()
  })

  describe('over TLS', () => {
    test.for([
      [
        'certificates that came with it',
        { STS_TRUST_FILE: '/nowhere/ca.crt', STS_CERTIFICATES: testServerCertificate },
        true,
      ],
      ['D7: no file and no certificates', { STS_TRUST_FILE: '/nowhere/ca.crt' }, false],
      [
        'certificates of another authority',
        { STS_TRUST_FILE: '/nowhere/ca.crt', STS_CERTIFICATES: unrelatedCertificate },
        false,
      ],
      ['nothing', {}, false],
    ] as const)('with %s', async ([_, variables, trusted], { scene: { endpoint, start } }) => {
      const server = await endpoint(() => good('a'), { tls: true })
      const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } }, variables })
      await vi.waitFor(() => expect(sidecar.log()).toMatch(trusted ? /written/ : /certificate/), soon)
      expect(existsSync(sidecar.fileOf('a'))).toBe(trusted)
    })

    test('with all the authorities of a large organization in the ConfigMap', async ({
      scene: { endpoint, start, temporaryFolder },
    }) => {
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

  test('an endless answer and arbitrary headers do no harm', async ({ scene: { start, later } }) => {
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
    later(() => {
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
    await vi.waitFor(() => expect(sidecar.log()).toMatch(/endless: \S+: .* again in/), soon)
    expect(existsSync(sidecar.fileOf('endless'))).toBe(false)
    expect(sidecar.process.exitCode).toBeNull()
    const sizes = readdirSync(sidecar.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      // A temporary file may have been renamed by now.
      .map(({ parentPath, name }) => statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? 0)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(65_536)
  })

  test('it removes the files of a killed one, and must become ready again', async ({ scene: { endpoint, start } }) => {
    const server = await endpoint(() => good('a'))
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(async () => expect(await sidecar.probe()).toEqual({ ready: true, output: '' }), soon)
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
    expect(readdirSync(`${sidecar.folder}/a`).sort()).toEqual(['status.json', 'token'])
    expect((await next.probe()).ready).toBe(false)
  })

  test('files that an SDK needs exist before the first token', async ({
    scene: { endpoint, start, temporaryFolder },
  }) => {
    const server = await endpoint(() => ({ hangs: true }))
    const folder = temporaryFolder()
    const text = '{"type": "external_account", "a": "$(touch owned) `id` %s \\\\ \\""}'
    const variables = { STS_FILES: `${folder}/gcp/credentials.json ${text}\n${folder}/k8s/config {}` }
    const sidecar = start({ shell, targets: { a: { url: server.url, audience: 'a' } }, variables })
    await vi.waitFor(() => expect(server.requests).toHaveLength(1), soon)
    expect(readFileSync(`${folder}/gcp/credentials.json`, 'utf8')).toBe(text)
    expect(readFileSync(`${folder}/k8s/config`, 'utf8')).toBe('{}')
    expect(statSync(`${folder}/gcp/credentials.json`).mode & 0o777).toBe(0o440)
    expect(await sidecar.probe()).toEqual({ ready: false, output: 'no token yet' })
  })

  describe('on a node whose clock', () => {
    test.for([
      ['is set back by five minutes', 0, -300],
      ['is set forward by an hour', 0, 3600],
      ['is a day behind, and put right', -86_400, 0],
      ['is a day ahead, and put right', 86_400, 0],
    ] as const)(
      '%s, it refreshes as the server says',
      async ([_, before, after], { scene: { endpoint, start, startClock } }) => {
        const server = await endpoint(() => good('a', { 'refresh-after': '2' }))
        const clock = startClock()
        clock.setDate(before)
        const sidecar = start({ shell, clock, targets: { a: { url: server.url, audience: 'a' } } })
        await vi.waitFor(async () => expect(await sidecar.probe()).toEqual({ ready: true, output: '' }), soon)
        clock.setDate(after)
        const asked = server.requests.length
        await vi.waitFor(() => expect(server.requests.length).toBeGreaterThan(asked + 1), soon)
        expect(await sidecar.probe()).toEqual({ ready: true, output: '' })
        expect(sidecar.log()).toContain('the clock of this node differs')
        expect(Math.max(...clock.sleeps().map(({ seconds }) => seconds))).toBeLessThanOrEqual(2)
      },
    )

    test('it never waits longer than 30 seconds at a time, so that a suspended machine catches up', async ({
      scene: { endpoint, start, startClock },
    }) => {
      const server = await endpoint(() => good('a'))
      const clock = startClock()
      const sidecar = start({ shell, clock, targets: { a: { url: server.url, audience: 'a' } } })
      await vi.waitFor(() => expect(clock.sleeps()).toHaveLength(1), soon)
      // The second may change between the token and the sleep.
      expect(clock.sleeps()[0]?.seconds).toBeLessThanOrEqual(30)
      expect(clock.sleeps()[0]?.seconds).toBeGreaterThan(20)
      expect((await sidecar.probe()).ready).toBe(true)
    })
  })

  test('it reports missing variables', async ({ scene: { start } }) => {
    const sidecar = start({ shell, targets: {} })
    expect(await sidecar.ended).toBe(2)
    expect(sidecar.log()).toContain('must be set')
  })
})

test.skipIf(!isInstalled('shellcheck'))('shellcheck finds nothing', () => {
  const args = ['--shell=sh', 'src/features/sts/injector/sidecar.sh']
  const { stdout, status } = spawnSync('shellcheck', args, { encoding: 'utf8' })
  expect(stdout).toBe('')
  expect(status).toBe(0)
})

/** Faster clocks, so that each takes seconds. */
describe.concurrent.each(shells)('the sidecar in $name', { timeout: 40_000 }, (shell) => {
  test('it replaces a token whose key was revoked within a minute, even if a replica still signs with it', async ({
    scene: { endpoint, start, startClock },
  }) => {
    const clock = startClock(20)
    const iat = now()
    // The second answer is of a replica that did not see the revocation.
    const kids = ['leaked', 'leaked', 'fresh-_1']
    const given: string[] = []
    let isLeaked = false
    const server = await endpoint(
      () => {
        const kid = kids[given.length] ?? 'more'
        given.push(kid)
        return { headers: { 'refresh-after': '600' }, body: tokenLike({ aud: 'a', iat, exp: iat + 900 }, kid) }
      },
      { key: (kid: string) => (isLeaked && kid === 'leaked' ? 410 : 204) },
    )
    const sidecar = start({ shell, clock, targets: { a: { url: server.url, audience: 'a' } } })
    await vi.waitFor(() => expect(clock.sleeps()).toHaveLength(1), soon)
    isLeaked = true
    await vi.waitFor(() => expect(given).toEqual(kids), soon)
    const slept = clock.sleeps().reduce((sum, { seconds }) => sum + seconds, 0)
    // Without the 15 seconds until a gateway knows of the revocation.
    expect(slept).toBeLessThanOrEqual(45)
    expect(sidecar.log()).toContain('the key of the token was revoked')
    await vi.waitFor(() => expect(clock.sleeps().length).toBeGreaterThan(4), soon)
    expect(given).toEqual(kids)
    expect((await sidecar.probe()).ready).toBe(true)
  })

  test.for([404, 500, 301, 401, 200] as const)(
    'it keeps a token if the question about its key is answered with %i',
    async (status, { scene: { endpoint, start, startClock } }) => {
      const clock = startClock(20)
      let asked = 0
      const key = () => {
        asked++
        return status
      }
      const server = await endpoint(() => good('a'), { key })
      const sidecar = start({ shell, clock, targets: { a: { url: server.url, audience: 'a' } } })
      await vi.waitFor(() => expect(asked).toBeGreaterThan(1), soon)
      expect(server.requests).toHaveLength(1)
      expect((await sidecar.probe()).ready).toBe(true)
    },
  )
})

/** After the others, since it measures time that is twenty times as short. */
describe.concurrent.each(shells)('the sidecar in $name', { timeout: 40_000 }, (shell) => {
  describe('on a node whose clock', () => {
    test('runs twenty times as fast: it is never Ready with an expired token during an outage of three minutes', async ({
      scene: { endpoint, start, startClock },
    }) => {
      const clock = startClock(20)
      const life = 300
      const given: { readonly expires: number }[] = []
      let away = false
      const server = await endpoint(() => {
        if (away) return { status: 503, headers: { 'retry-after': '60' }, body: '{"error":"temporarily_unavailable"}' }
        given.push({ expires: clock.uptime() + life })
        const iat = now()
        return { headers: { 'refresh-after': '240' }, body: tokenLike({ aud: 'a', iat, exp: iat + life }) }
      })
      const sidecar = start({ shell, clock, targets: { a: { url: server.url, audience: 'a' } } })
      await vi.waitFor(async () => expect((await sidecar.probe()).ready).toBe(true), soon)
      // Shortly before the refresh, so that the token expires in the outage.
      await vi.waitFor(() => expect(clock.uptime()).toBeGreaterThan((given[0]?.expires ?? 0) - life + 180), soon)
      away = true
      const [first] = given
      const expired = first?.expires ?? 0
      const recovery = clock.uptime() + 180
      let unready = 0
      while (clock.uptime() < recovery) {
        const { ready, output } = await sidecar.probe()
        // Read after the probe: a Ready that came late would be worse.
        if (clock.uptime() >= expired) expect(ready).toBe(false)
        if (!ready) {
          unready += 1
          expect(output).toMatch(/no valid token; last error: 503-temporarily_unavailable/)
        }
        await new Promise((resolve) => setTimeout(resolve, 25))
      }
      expect(unready).toBeGreaterThan(0)
      away = false
      await vi.waitFor(async () => expect((await sidecar.probe()).ready).toBe(true), soon)
      // With little left of the token, a Retry-After of a minute and every backoff end after four seconds.
      const low = clock.sleeps().filter(({ at }) => at > expired - 60 && at < recovery)
      expect(low.length).toBeGreaterThan(3)
      expect(Math.max(...low.map(({ seconds }) => seconds))).toBeLessThanOrEqual(4)
      expect(sidecar.statusOf('a')).toMatchObject({ failures: 0, lastError: '503-temporarily_unavailable' })
    })
  })
})
