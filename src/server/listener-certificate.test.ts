import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import https, { Agent, type RequestOptions, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type LogFields, type Logger, silentLogger } from '#kernel/logger.ts'
import { CertificateReload, checkPair, readPair, timeProblem } from '#server/listener-certificate.ts'
import { freshCertificate } from '#testing/gateway/test-certificates.ts'

const day = 86_400_000
type Pair = ReturnType<typeof freshCertificate>

const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** A mounted Secret: the files are links through `..data`, which is swapped as a whole. */
function mountedSecret(first: Pair) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-certificate-'))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  let version = 0
  const swap = ({ certificate, privateKey }: Pick<Pair, 'certificate' | 'privateKey'>): void => {
    const name = `..version-${++version}`
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'tls.crt'), certificate)
    writeFileSync(join(folder, name, 'tls.key'), privateKey)
    symlinkSync(name, join(folder, '..data-new'))
    renameSync(join(folder, '..data-new'), join(folder, '..data'))
  }
  swap(first)
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(folder, name))
  return { files: { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') }, swap, folder }
}

async function start(everyMillis = 3_600_000) {
  const first = freshCertificate()
  const secret = mountedSecret(first)
  const server = https.createServer({ cert: first.certificate, key: first.privateKey }, (_, response) => {
    response.end('here')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => new Promise((resolve) => server.close(resolve)).finally(() => server.closeAllConnections()))
  const metered = { expires: undefined as Date | undefined, current: undefined as boolean | undefined }
  const errors: LogFields[] = []
  const log: Logger = { ...silentLogger, error: (_, fields = {}) => void errors.push(fields) }
  const reload = new CertificateReload({
    listener: 'public',
    files: secret.files,
    served: await readPair(secret.files),
    server,
    clock: () => new Date(),
    log,
    meter: {
      serves: (_, expires) => (metered.expires = expires),
      current: (_, isCurrent) => (metered.current = isCurrent),
    },
    everyMillis,
  })
  closers.push(() => reload.close())
  const { port } = server.address() as AddressInfo
  const call = (options: RequestOptions): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, path: '/', agent: false, ...options }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode))
      })
      sent.once('error', reject).end()
    })
  return { ...secret, first, reload, metered, errors, call }
}

describe('a listener whose certificate is replaced', () => {
  test('serves the new certificate to new connections, and keeps open ones', async () => {
    const { swap, reload, metered, call, first } = await start()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    closers.push(() => agent.destroy())
    const old = { agent, ca: first.authority }
    expect(await call(old)).toBe(200)
    const second = freshCertificate()
    swap(second)
    await reload.look()
    expect(await call({ ca: second.authority })).toBe(200)
    await expect(call({ ca: first.authority })).rejects.toThrow('certificate')
    expect(await call(old)).toBe(200)
    expect(metered).toEqual({ expires: checkPair(second), current: true })
  })

  test('notices the change by the content of the files', async () => {
    const { swap, call } = await start(20)
    const second = freshCertificate()
    swap(second)
    await vi.waitFor(() => expect(call({ ca: second.authority })).resolves.toBe(200), { timeout: 10_000 })
  })

  const stranger = freshCertificate()
  test.each<[string, (pair: Pair) => Pick<Pair, 'certificate' | 'privateKey'>, RegExp]>([
    ['of another key', (pair) => ({ ...pair, privateKey: stranger.privateKey }), /not that of the certificate/],
    ['that is expired', () => freshCertificate(new Date(Date.now() - 100 * day)), /expired on 20/],
    ['that is not valid yet', () => freshCertificate(new Date(Date.now() + 2 * day)), /not valid before 20/],
    ['that is half written', (pair) => ({ ...pair, certificate: pair.certificate.slice(0, 200) }), /./],
    [
      'whose chain is half written',
      (pair) => ({ ...pair, certificate: `${pair.certificate}${pair.certificate.slice(0, 200)}` }),
      /./,
    ],
    ['whose key is empty', (pair) => ({ ...pair, privateKey: '' }), /./],
    ['that is not a certificate', (pair) => ({ ...pair, certificate: 'hello' }), /./],
  ])('keeps the old one and reports a pair %s, once', async (_, broken, reason) => {
    const { swap, reload, metered, errors, call, first } = await start()
    swap(broken(freshCertificate()))
    await reload.look()
    await reload.look()
    expect(await call({ ca: first.authority })).toBe(200)
    expect(metered).toEqual({ expires: checkPair(first), current: false })
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatchObject({ listener: 'public', error: { message: expect.stringMatching(reason) } })
    const good = freshCertificate()
    swap(good)
    await reload.look()
    expect(await call({ ca: good.authority })).toBe(200)
    expect(metered.current).toBe(true)
  })

  test("keeps the old one while the files can't be read", async () => {
    const { reload, metered, errors, call, first, folder, swap } = await start()
    rmSync(join(folder, '..data'))
    await reload.look()
    expect(await call({ ca: first.authority })).toBe(200)
    expect([metered.current, errors.length]).toEqual([false, 1])
    swap(first)
    await reload.look()
    expect(metered.current).toBe(true)
  })
})

test.each([
  ['a named pipe', (path: string) => execFileSync('mkfifo', [path]), 'is not a file'],
  ['a device without an end', (path: string) => symlinkSync('/dev/zero', path), 'is not a file'],
  ['a link to itself', (path: string) => symlinkSync(path, path), 'ELOOP'],
  ['a folder', (path: string) => mkdirSync(path), 'is not a file'],
  ['a large file', (path: string) => writeFileSync(path, Buffer.alloc(2 << 20)), 'is larger than 1048576 bytes'],
])('%s instead of a certificate is rejected at once', async (_, make, reason) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-certificate-'))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  make(certFile)
  writeFileSync(keyFile, freshCertificate().privateKey)
  await expect(readPair({ certFile, keyFile })).rejects.toThrow(reason)
})

test('a certificate that clients reject is reported if there is no other', () => {
  const now = new Date()
  expect(timeProblem(freshCertificate(), now)).toBeUndefined()
  expect(timeProblem(freshCertificate(new Date(now.getTime() - 100 * day)), now)).toMatch(
    /^the certificate expired on /,
  )
})
