import { execFile, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { arch, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'

mkdirSync('.cache', { recursive: true })
/** Not in memory, where a device may not be opened. */
const folder = resolve(mkdtempSync('.cache/release-'))
/** Nothing else is written here. */
const unpacked = join(folder, 'unpacked')
const files = mkdtempSync(join(tmpdir(), 'gatehouse-release-'))
const released = join(files, 'dist')
const again = join(files, 'again')
const architecture = arch() === 'arm64' ? 'arm64' : 'amd64'
const { version, dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))

/** For tests that run at the same time. */
const timeout = 360_000
const start = promisify(execFile)

async function run(program: string, args: readonly string[], cwd = folder): Promise<string> {
  const running = start(program, args, { cwd, maxBuffer: 64 << 20 })
  running.child.stdin?.end()
  return (await running).stdout
}

/** What a command prints, whether or not it fails. */
const printed = (program: string, args: readonly string[], cwd: string): Promise<string> =>
  run(program, args, cwd).catch(({ stdout }: { stdout: string }) => stdout)

beforeAll(async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  writeFileSync(join(folder, 'public.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
  const release = ['release/run.ts', '--sign-key', join(folder, 'key.pem'), '--to']
  await Promise.all([released, again].map((target) => run('bin/node', [...release, target], resolve('.'))))
}, 900_000)

afterAll(() => {
  for (const made of [folder, files]) rmSync(made, { recursive: true, force: true })
})

test('two releases of the same commit have the same bytes', () => {
  const sums = readFileSync(join(released, 'SHA256SUMS'), 'utf8')
  expect(readFileSync(join(again, 'SHA256SUMS'), 'utf8')).toBe(sums)
  const shipped = sums
    .trim()
    .split('\n')
    .map((line) => line.slice(66))
  expect(shipped).toEqual(
    expect.arrayContaining([
      `gatehouse-${version}-linux-amd64.tar.gz`,
      `gatehouse-${version}-linux-arm64.tar.gz`,
      `npm/gatehouse-${version}.tgz`,
      `chart/gatehouse-${version}.tgz`,
      'image/index.json',
    ]),
  )
})

describe('the checksums', () => {
  const verify = (): Promise<string> =>
    run('openssl', [
      ...['pkeyutl', '-verify', '-pubin', '-inkey', join(folder, 'public.pem'), '-rawin'],
      ...['-in', join(again, 'SHA256SUMS'), '-sigfile', join(again, 'SHA256SUMS.sig')],
    ])

  test('verify with the public key, and not after a byte was changed', async () => {
    expect(await verify()).toContain('Signature Verified Successfully')
    await run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], again)
    const file = join(again, 'chart/index.yaml')
    writeFileSync(file, `${readFileSync(file, 'utf8')}#`)
    const checked = await printed('sh', ['-c', 'grep chart/ SHA256SUMS | sha256sum --check --quiet'], again)
    expect(checked).toBe('chart/index.yaml: FAILED\n')
    const sums = join(again, 'SHA256SUMS')
    writeFileSync(
      sums,
      readFileSync(sums, 'utf8').replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
    )
    await expect(verify()).rejects.toThrow()
  })
})

test('the bill of materials has every dependency with its license, and the package has their texts', () => {
  const { components } = JSON.parse(readFileSync(join(released, `gatehouse-${version}.cdx.json`), 'utf8'))
  const named = components.map(({ name }: { name: string }) => name)
  expect(named).toEqual(expect.arrayContaining([...Object.keys(dependencies), 'react', '@mantine/core', 'libc6']))
  const withoutLicense = components.filter(
    ({ licenses }: { licenses?: { license?: { id?: string }; expression?: string }[] }) =>
      (licenses?.[0]?.license?.id ?? licenses?.[0]?.expression ?? '') === '',
  )
  expect(withoutLicense).toEqual([])
  const texts = readFileSync(join(released, 'gatehouse/THIRD-PARTY-LICENSES.txt'), 'utf8')
  for (const name of Object.keys(dependencies)) expect(texts).toContain(`\n${name} `)
})

test('the pages of the documentation that commands name are in the package', () => {
  const texts = globSync(['src/cli/commands/*.ts', 'examples/quickstart/*.txt']).map((file) =>
    readFileSync(file, 'utf8'),
  )
  const pages = new Set(texts.flatMap((text) => text.match(/\bdocs\/[\w./-]+\.md\b/g) ?? []))
  expect(pages).toContain('docs/guides/backup-and-restore.md')
  expect([...pages].filter((page) => !existsSync(join(released, 'gatehouse', page)))).toEqual([])
})

interface Served {
  readonly url: string
  readonly output: string
}

/** Serves the quickstart with a program, and stops it afterwards. */
async function serving(
  [program = '', ...before]: readonly string[],
  place: { readonly config: string; readonly data: string; readonly cwd?: string; readonly home?: string },
  use: (served: Served) => Promise<void>,
): Promise<void> {
  const { config, data, cwd = folder, home = folder } = place
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const listen = ['--listen', `127.0.0.1:${port}`, '--metrics', 'off']
  const child = spawn(program, [...before, 'serve', '--config', config, '--data', data, ...listen], {
    cwd,
    env: { PATH: process.env['PATH'], HOME: home, GATEHOUSE_URL: url },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  const ended = once(child, 'exit')
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`gatehouse ended with ${child.exitCode}:\n${output}`)
      return (await fetch(`${url}/ready`).catch(() => undefined))?.ok === true
    }, 120_000)
    await until(async () => output.includes('Listening on'), 30_000)
    await use({ url, output })
  } finally {
    child.kill('SIGTERM')
    await ended
  }
  expect(child.exitCode).toBe(0)
}

/** Pastes the lines of the command that the gateway prints: a login, requests, and the five SCIM calls. */
async function pasteLines({ url, output }: Served, cwd: string): Promise<void> {
  const linesOf = (text: string): string[] =>
    [...text.matchAll(/^ {2}((?:[A-Z_]+=|curl |\S*gatehouse ).*)$/gm)].map(([, line = '']) => line)
  const [examples = ''] = linesOf(output)
  const lines = linesOf(await run('sh', ['-c', examples], cwd))
  expect(lines.length).toBeGreaterThan(15)
  const script = lines.map((line) => `${line}\necho "<<< $?"`).join('\n')
  const answers = (await run('sh', ['-c', script], cwd)).split(/<<< (\d+)\n/)
  expect(answers.filter((_, at) => at % 2 === 1)).toEqual(lines.map(() => '0'))
  const scim = lines.findIndex((line) => line.startsWith('TOKEN='))
  const answered = lines.map((line, at) => [line, answers[2 * at] ?? ''] as const).slice(scim + 1, scim + 6)
  expect(answered.map(([line]) => line.includes('/scim/'))).toEqual([true, true, true, true, true])
  const [found = '', created = '', joined = '', read = '', removed = ''] = answered.map(([, answer]) => answer)
  expect(JSON.parse(found)).toMatchObject({ totalResults: 1 })
  expect(JSON.parse(created)).toMatchObject({ userName: 'mary' })
  expect([joined, removed]).toEqual(['204\n', '204\n'])
  expect(JSON.parse(read)).toMatchObject({ groups: [{ value: 'group:sales' }] })
  const portal = await (await PortalPerson.logIn({ url }, 'ada')).get('/portal')
  expect([portal.status, portal.text]).toEqual([200, expect.stringContaining('assets/')])
}

test.concurrent('the archive runs where it is unpacked, and leaves nothing outside', { timeout }, async () => {
  const name = `gatehouse-${version}-linux-${architecture}`
  mkdirSync(unpacked)
  await run('tar', ['-xzf', join(released, `${name}.tar.gz`)], unpacked)
  const home = join(unpacked, name)
  expect(await run(join(home, 'bin/gatehouse'), ['--version'])).toBe(`${version}\n`)
  const place = { config: 'examples/quickstart', data: '.gatehouse', cwd: home, home: unpacked }
  await serving(['bin/gatehouse'], place, (served) => pasteLines(served, home))
  expect(readdirSync(unpacked)).toEqual([name])
})

test.concurrent('the npm package is installed, runs, has the types of plug-ins, and is uninstalled', {
  timeout,
}, async () => {
  const home = join(folder, 'project')
  mkdirSync(home)
  writeFileSync(join(home, 'package.json'), '{"private": true, "type": "module"}')
  await run('npm', ['install', '--no-audit', '--no-fund', join(released, `npm/gatehouse-${version}.tgz`)], home)
  const installed = join(home, 'node_modules/gatehouse')
  const [, kilobytes = '0'] = /^(\d+)/.exec(await run('du', ['-sk', installed])) ?? []
  expect(Number(kilobytes)).toBeLessThan(40_000)
  expect(
    globSync('*', { cwd: join(home, 'node_modules') }).filter((one) => !/^(?:gatehouse|node-linux-.*)$/.test(one)),
  ).toEqual([])
  writeFileSync(
    join(home, 'task.ts'),
    "import type { PluginUser } from 'gatehouse/plugin'\nexport const user: PluginUser = { userID: 1 }\n",
  )
  const tsc = [
    resolve('node_modules/typescript/bin/tsc'),
    '--noEmit',
    '--ignoreConfig',
    '--module',
    'nodenext',
    '--strict',
    'task.ts',
  ]
  expect(await printed(process.execPath, tsc, home)).toMatch(
    /^task\.ts\(2,.*Type 'number' is not assignable to type 'string'/,
  )
  writeFileSync(
    join(home, 'task.ts'),
    "import type { PluginUser } from 'gatehouse/plugin'\nexport const idOf = (user: PluginUser): string => user.userID\n",
  )
  expect(await printed(process.execPath, tsc, home)).toBe('')
  expect(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))).not.toHaveProperty('private')
  const readme = readFileSync(join(installed, 'README.md'), 'utf8')
  for (const [, command = ''] of readme.matchAll(/npx gatehouse ([a-z]+)/g)) {
    expect(await run('node_modules/.bin/gatehouse', [command, '--help'], home)).toContain(`gatehouse ${command} `)
  }
  const created = await run('npx', ['gatehouse', 'init', 'my-gateway', '--domain', 'idm.example.test'], home)
  expect(created).toMatch(/^ {2}npx gatehouse check --production --config my-gateway\/config /m)
  expect(await run('npx', ['gatehouse', 'check', '--config', 'my-gateway/config'], home)).toBe('')
  const config = 'node_modules/gatehouse/examples/quickstart'
  await serving(['node_modules/.bin/gatehouse'], { config, data: '.gatehouse', cwd: home }, (served) =>
    pasteLines(served, home),
  )
  await run('npm', ['uninstall', 'gatehouse'], home)
  expect([existsSync(installed), existsSync(join(home, 'node_modules/.bin/gatehouse'))]).toEqual([false, false])
})

interface Manifest {
  readonly layers: readonly { readonly digest: string }[]
  readonly config: { readonly digest: string }
}

// Its files belong to other users, and it has a device.
test
  .skipIf(process.getuid?.() !== 0)
  .concurrent('the image runs without a shell, as a user without rights, on files that it cannot change', async () => {
    const blob = (digest: string): string => join(released, 'image/blobs/sha256', digest.slice('sha256:'.length))
    const json = (digest: string) => JSON.parse(readFileSync(blob(digest), 'utf8'))
    const { manifests } = JSON.parse(readFileSync(join(released, 'image/index.json'), 'utf8'))
    const all = json(manifests[0].digest).manifests
    expect(all.map(({ platform }: { platform: object }) => platform)).toEqual([
      { architecture: 'amd64', os: 'linux' },
      { architecture: 'arm64', os: 'linux' },
    ])
    const own = all.find(
      ({ platform }: { platform: { architecture: string } }) => platform.architecture === architecture,
    )
    const { layers, config }: Manifest = json(own.digest)
    const root = join(folder, 'root')
    mkdirSync(root)
    for (const { digest } of layers) await run('tar', ['-C', root, '--same-owner', '-xpzf', blob(digest)])
    expect(['bin/sh', 'usr/bin/sh', 'bin/bash'].filter((file) => existsSync(join(root, file)))).toEqual([])
    const { Entrypoint, User, Env } = json(config.digest).config
    expect(User).toBe('10001:10001')
    expect(
      await run('find', [root, '-user', '10001', '-not', '-path', `${root}/data*`, '-not', '-path', `${root}/tmp`]),
    ).toBe('')
    cpSync('examples/quickstart', join(root, 'etc/gatehouse/config'), { recursive: true })
    // As every container runtime provides it.
    mkdirSync(join(root, 'dev'))
    await run('mknod', ['-m', '666', join(root, 'dev/null'), 'c', '1', '3'])
    const program = ['chroot', `--userspec=${User}`, root, ...Entrypoint]
    const place = { config: '/etc/gatehouse/config', data: '/data' }
    const environment = Env.map((one: string) => one.split('='))
    expect(Object.fromEntries(environment)).toMatchObject({ NODE_COMPILE_CACHE: '/tmp/compiled' })
    await serving(program, place, async ({ url }) => {
      const ada = await PortalPerson.logIn({ url }, 'ada')
      expect((await ada.get('/main/user')).json).toMatchObject({ uid: 'ada' })
      const mint = [
        'token',
        'mint',
        '--data',
        '/data',
        '--issuer',
        `${url}/dev-issuer`,
        '--subject',
        'idp',
        '--claim',
        'role=crm',
      ]
      const [chroot = '', ...rest] = [...program, ...mint]
      const authorization = `Bearer ${(await run(chroot, rest)).trim()}`
      const people = await fetch(`${url}/scim/people/Users?count=1`, { headers: { authorization } })
      expect(await people.json()).toMatchObject({ totalResults: 3 })
    })
  })

test.skipIf(inject('helm') === undefined)('the chart is installed from its index', async () => {
  const helm = inject('helm') ?? ''
  const index = readFileSync(join(released, 'chart/index.yaml'), 'utf8')
  const archive = join(released, `chart/gatehouse-${version}.tgz`)
  expect(index).toContain((await run('sha256sum', [archive])).slice(0, 64))
  expect(await run(helm, ['show', 'chart', archive])).toContain(`version: ${version}`)
  expect(await run(helm, ['template', 'gatehouse', archive])).toContain('kind: Deployment')
})
