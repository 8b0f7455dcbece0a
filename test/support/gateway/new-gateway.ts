import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { TOTP } from 'otpauth'
import { expect, onTestFinished } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'

const run = promisify(execFile)
const gatehouse = process.env['GATEHOUSE_PROGRAM'] ?? 'bin/gatehouse'
const password = 'correct horse battery'

/** A gateway that `gatehouse init` made, run by the commands that it printed. */
interface NewGateway {
  /** The answer to the printed SCIM request that creates a user, as JSON. */
  createUser(): Promise<Record<string, unknown>>
  /** A request like the printed ones: GET, or POST of a body. */
  scim(path: string, body?: object): Promise<Record<string, unknown>>
  /** Logs the printed administrator in with a password and a new authenticator app. Returns the answer of the portal's API. */
  logIn(): Promise<Record<string, unknown>>
  stop(): Promise<void>
}

/** `adapt` changes the folder before the gateway starts, as an operator would. */
async function startNewGateway(
  args: readonly string[],
  adapt: (folder: string) => void = () => {},
): Promise<NewGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-init-'))
  const port = await freePort()
  const isLocal = args.includes('--local')
  const site = `${isLocal ? 'localhost' : 'idm.example.test'}:${port}`
  const origin = `${isLocal ? 'http' : 'https'}://${site}`
  const { stdout: printed } = await run(gatehouse, ['init', join(folder, 'new gateway'), '--domain', site, ...args])
  adapt(join(folder, 'new gateway'))
  const line = (start: RegExp): string => {
    const found = printed.split('\n').find((one) => start.test(one))
    if (found === undefined) throw new Error(`no line like ${start} in:\n${printed}`)
    return found.trim()
  }
  const load = line(/^ {2}set -a/)
  await run('sh', ['-ec', `${load}\necho '${password}' | ${line(/ user add /)}`])
  const child = spawn('sh', ['-ec', `${load}\nexec ${line(/ serve /)} --metrics off`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const list = line(/curl .*\/Users$/)
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`gatehouse ended with ${child.exitCode}:\n${output}`)
    return (await run('sh', ['-c', list]).catch(() => undefined)) !== undefined
  }, 60_000)
  const curl = (...more: readonly string[]): Promise<string> => {
    const cookies = join(folder, 'cookies')
    const authority = ['--cacert', join(folder, 'new gateway/tls/ca.crt'), '--resolve', `${site}:127.0.0.1`]
    const trust = isLocal ? [] : authority
    const browser = ['-s', '-L', '-b', cookies, '-c', cookies, '-H', 'Accept: text/html', ...trust]
    return run('curl', [...browser, ...more]).then(({ stdout }) => stdout)
  }
  const actionOf = (page: string): string => {
    const path = /<form method="post" action="([^"]+)"/.exec(page)?.[1]?.replaceAll('&amp;', '&')
    if (path === undefined) throw new Error(`no form in:\n${page}`)
    return `${origin}${path}`
  }
  return {
    createUser: async () => JSON.parse((await run('sh', ['-c', `${line(/curl .* -d /)} -s`])).stdout),
    scim: async (path, body) => {
      const post = body === undefined ? '' : ` -H 'Content-Type: application/scim+json' -d '${JSON.stringify(body)}'`
      return JSON.parse((await run('sh', ['-c', `${list.replace(/\/Users$/, path)} -s${post}`])).stdout)
    },
    logIn: async () => {
      const login = actionOf(await curl(`${origin}/portal/main/user`))
      const enrol = await curl('-d', 'user=admin', '--data-urlencode', `pwd=${password}`, login)
      const secret = (/Key: <code>([^<]+)</.exec(enrol)?.[1] ?? '').replaceAll(' ', '')
      const codes = await curl('-d', `code=${new TOTP({ secret }).generate()}`, actionOf(enrol))
      return JSON.parse(await curl('-d', '', actionOf(codes)))
    },
    stop: async () => {
      if (child.exitCode === null) {
        const ended = once(child, 'exit')
        child.kill('SIGTERM')
        await ended
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The printed commands work: a SCIM client creates a user, and a group where the target has them, and the administrator logs in. */
export async function expectWorking(args: readonly string[], adapt?: (folder: string) => void): Promise<void> {
  const gateway = await startNewGateway(args, adapt)
  onTestFinished(() => gateway.stop())
  const user = await gateway.createUser()
  expect(user).toMatchObject({
    userName: 'ada',
    id: expect.any(String),
    emails: [expect.objectContaining({ value: 'ada@example.com' })],
  })
  // In a cluster, groups exist only as names in User objects.
  if (!args.includes('kubernetes')) {
    const { id, meta } = await gateway.scim('/Groups', { displayName: 'crew', members: [{ value: user['id'] }] })
    const { groups } = await gateway.scim(`/Users/${user['id']}`)
    expect(groups).toMatchObject([{ value: id, $ref: (meta as Record<string, unknown>)['location'] }])
  }
  expect(await gateway.logIn()).toMatchObject({ uid: 'admin', groups: ['administrators'] })
}

/** A file with the text, for options that name one. */
export function secretFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-init-secret-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'secret')
  writeFileSync(file, `${text}\n`, { mode: 0o600 })
  return file
}
