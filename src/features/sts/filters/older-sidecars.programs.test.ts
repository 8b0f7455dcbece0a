import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { createServer } from '#protocols/http/node-http.ts'
import { oauthErrors, oauthRefusal } from '#protocols/sts/token-exchange.ts'
import { isInstalled } from '#testing/run/installed.ts'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close()
})

/** An older sidecar, and a token service that returns these errors before a token. */
async function start(...refusals: GatewayError[]) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-older-sidecar-'))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { aud: 'a', exp: Math.floor(Date.now() / 1000) + 900 }
  const token = `${encode({ alg: 'RS256' })}.${encode(claims)}.${'s'.repeat(40)}`
  const server = createServer({}, (request, response) => {
    const error = refusals.shift()
    request.resume().once('end', () => {
      if (error === undefined) response.end(token)
      else response.writeHead(error.status).end(oauthErrors(error).body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => server.close())
  const [file, credential] = [join(folder, 'out', 'token'), join(folder, 'credential')]
  writeFileSync(credential, 'the.credential.here')
  const env = {
    ...process.env,
    STS_TARGETS: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ ${file} ${credential} "a"`,
    STS_FILE_MODE: '0440',
    STS_READY_FILE: join(folder, 'ready'),
  }
  const child = spawn('sh', ['test/support/sts/older-sidecar.sh'], { env, stdio: 'ignore' })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  closers.push(() => child.kill('SIGTERM'))
  return { ended, written: () => (existsSync(file) ? readFileSync(file, 'utf8') : undefined), token }
}

const inShell = test.skipIf(!isInstalled('curl'))

inShell(
  'an older sidecar tries again after an expired credential and a busy service',
  async () => {
    const { written, token } = await start(
      oauthRefusal('invalid_grant', 'The subject token is expired.'),
      new GatewayError('TOO_MANY_REQUESTS', 'busy', { keyword: 'slow_down' }),
      new GatewayError('TARGET_UNREACHABLE', 'away'),
    )
    await vi.waitFor(() => expect(written()).toBe(token), { timeout: 60_000, interval: 50 })
  },
  70_000,
)

inShell(
  'an older sidecar ends if no rule allows its account',
  async () => {
    const { ended, written } = await start(new GatewayError('ACCESS_DENIED', 'no rule', { keyword: 'access_denied' }))
    expect(await ended).toBe(1)
    expect(written()).toBeUndefined()
  },
  60_000,
)
