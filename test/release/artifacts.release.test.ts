import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { describe, expect, inject, test } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { ended, run } from '#testing/release/run-program.ts'
import { type Served, serving } from '#testing/release/served.ts'
import { architecture } from '#testing/release/unpacked-image.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import { writeArchive } from '../../release/archive.ts'

const { folder: released, again, publicKey, scratch: folder } = inject('release')
/** Nothing else is written here. */
const unpacked = join(folder, 'unpacked')
const { name: packageName, version, dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))

/** The package in the release. */
const packed = `npm/gatehouse-iam-gatehouse-${version}.tgz`

/** For tests that run at the same time. */
const timeout = 360_000

test('two releases of the same commit have the same bytes', () => {
  const sums = readFileSync(join(released, 'SHA256SUMS'), 'utf8')
  expect(readFileSync(join(again, 'SHA256SUMS'), 'utf8')).toBe(sums)
  const listed = sums
    .trim()
    .split('\n')
    .map((line) => line.slice(66))
  expect(listed.filter((name) => !name.startsWith('image/blobs/'))).toEqual([
    `chart/gatehouse-${version}.tgz`,
    'chart/index.yaml',
    `gatehouse-${version}-linux-amd64.tar.gz`,
    `gatehouse-${version}-linux-arm64.tar.gz`,
    `gatehouse-${version}.cdx.json`,
    'image/index.json',
    'image/oci-layout',
    packed,
    `packages/gatehouse-${version}-1.aarch64.rpm`,
    `packages/gatehouse-${version}-1.x86_64.rpm`,
    `packages/gatehouse_${version}_amd64.deb`,
    `packages/gatehouse_${version}_arm64.deb`,
  ])
})

describe('the checksums', () => {
  const verify = (): Promise<string> =>
    run('openssl', [
      ...['pkeyutl', '-verify', '-pubin', '-inkey', publicKey, '-rawin'],
      ...['-in', join(again, 'SHA256SUMS'), '-sigfile', join(again, 'SHA256SUMS.sig')],
    ])

  test('verify with the public key, and not after a byte was changed', async () => {
    expect(await verify()).toContain('Signature Verified Successfully')
    await run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], again)
    const file = join(again, 'chart/index.yaml')
    writeFileSync(file, `${readFileSync(file, 'utf8')}#`)
    const checked = await ended('sh', ['-c', 'grep chart/ SHA256SUMS | sha256sum --check --quiet'], again)
    expect(checked.stdout).toBe('chart/index.yaml: FAILED\n')
    const sums = join(again, 'SHA256SUMS')
    writeFileSync(
      sums,
      readFileSync(sums, 'utf8').replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
    )
    await expect(verify()).rejects.toThrow()
  })
})

interface Part {
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly licenses?: readonly { readonly license?: { readonly id?: string }; readonly expression?: string }[]
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  readonly cpe?: string
  readonly components?: readonly Part[]
}

describe('the bill of materials', () => {
  const bill: {
    readonly metadata: { readonly component: { readonly 'bom-ref': string } }
    readonly components: readonly Part[]
    readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
  } = JSON.parse(readFileSync(join(released, `gatehouse-${version}.cdx.json`), 'utf8'))
  const { components, dependencies: edges } = bill

  test('has every dependency with its license and hash, and the package has the license texts', () => {
    const named = components.map(({ name }) => name)
    expect(named).toEqual(expect.arrayContaining([...Object.keys(dependencies), 'react', '@mantine/core', 'libc6']))
    const withoutLicense = components.filter(
      ({ licenses }) => (licenses?.[0]?.license?.id ?? licenses?.[0]?.expression ?? '') === '',
    )
    expect(withoutLicense).toEqual([])
    const isHashed = ({ hashes: [hash] = [] }: Part): boolean =>
      hash !== undefined && new RegExp(`^[0-9a-f]{${hash.alg === 'SHA-512' ? 128 : 64}}$`).test(hash.content)
    // Node.js comes in the packages of npm that it depends on.
    expect(components.filter((one) => !isHashed(one)).map(({ name }) => name)).toEqual(['nodejs'])
    const texts = readFileSync(join(released, 'gatehouse/THIRD-PARTY-LICENSES.txt'), 'utf8')
    for (const name of Object.keys(dependencies)) expect(texts).toContain(`\n${name} `)
  })

  test('has a graph that leads to every part', () => {
    const [own, known] = [bill.metadata.component['bom-ref'], new Set(components.map((one) => one['bom-ref']))]
    expect(own).toBe(`pkg:npm/%40gatehouse-iam/gatehouse@${version}`)
    const uses = new Map(edges.map(({ ref, dependsOn }) => [ref, dependsOn]))
    expect([...uses.keys()].sort()).toEqual([own, ...known].sort())
    const reached = new Set([own])
    for (const ref of reached) for (const next of uses.get(ref) ?? []) reached.add(next)
    expect([...reached].sort()).toEqual([own, ...known].sort())
  })

  test('names Node.js and what it contains as advisories do', async () => {
    const node = components.find(({ name }) => name === 'nodejs')
    const versions = await run('bin/node', ['-p', 'JSON.stringify(process.versions)'], resolve('.'))
    const { node: release, openssl, sqlite } = JSON.parse(versions)
    expect(node).toMatchObject({
      'bom-ref': `pkg:generic/nodejs@${release}`,
      cpe: `cpe:2.3:a:nodejs:node.js:${release}:*:*:*:*:*:*:*`,
    })
    const inside = node?.components?.map(({ name, version: of }) => [name, of])
    expect(inside).toEqual(
      expect.arrayContaining([
        ['openssl', openssl],
        ['sqlite', sqlite],
      ]),
    )
  })
})

test('the pages of the documentation that commands name are in the package', () => {
  const texts = globSync(['src/cli/commands/*.ts', 'examples/quickstart/*.txt']).map((file) =>
    readFileSync(file, 'utf8'),
  )
  const pages = new Set(texts.flatMap((text) => text.match(/\bdocs\/[\w./-]+\.md\b/g) ?? []))
  expect(pages).toContain('docs/guides/backup-and-restore.md')
  expect([...pages].filter((page) => !existsSync(join(released, 'gatehouse', page)))).toEqual([])
})

test('relative links of the documentation lead to files of the package', () => {
  const root = join(released, 'gatehouse')
  const pages = globSync('**/*.md', { cwd: root })
  const dead = pages.flatMap((page) =>
    Array.from(readFileSync(join(root, page), 'utf8').matchAll(/\]\((?![a-z]+:|#)([^)\s#]+)/g), ([, link = '']) => link)
      .filter((link) => !existsSync(resolve(root, dirname(page), link)))
      .map((link) => `${page}: ${link}`),
  )
  expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/README.md', 'docs/specification.md']))
  expect(dead).toEqual([])
})

/** Runs the commands of a README as they are written, and those that its sentences name with `--help`. What it serves is used. */
async function followReadme(readme: string, place: { readonly cwd: string; readonly home: string }): Promise<void> {
  const { cwd, home } = place
  const text = readFileSync(readme, 'utf8')
  const env = { PATH: process.env['PATH'], HOME: home }
  const blocks = Array.from(text.matchAll(/^```sh\n(.*?)^```$/gms), ([, block = '']) => block.trim().split('\n'))
  for (const line of blocks.flat()) {
    // Nobody answers its questions here.
    if (line.includes('gatehouse init')) {
      const created = await run('sh', ['-c', `${line} --domain idm.example.test`], cwd)
      const [, program = ''] = /^(.*gatehouse) init /.exec(line) ?? []
      expect(created).toContain(`  ${program} check --production --config my-gateway/config `)
      await run('sh', ['-c', `${program} check --config my-gateway/config`], cwd)
    } else if (line.includes('gatehouse serve')) {
      const url = `http://127.0.0.1:${await freePort()}`
      // npx does not pass on the signal that ends it.
      const [program = '', ...words] = line.replace(/^npx /, 'node_modules/.bin/').split(' ')
      const args = [...words, '--listen', new URL(url).host, '--metrics', 'off']
      await serving({ program, args, cwd, env: { ...env, GATEHOUSE_URL: url }, url }, (served) =>
        pasteLines(served, cwd),
      )
    } else {
      // The registry has it when it was published.
      expect(line).toBe(`npm install ${packageName}`)
      await run('npm', ['install', '--no-audit', '--no-fund', join(released, packed)], cwd)
    }
  }
  const named = Array.from(text.matchAll(/`((?:npx |bin\/)gatehouse) ([a-z]+)/g))
  expect(named.length).toBeGreaterThan(0)
  for (const [, program = '', command = ''] of named) {
    expect(await run('sh', ['-c', `${program} ${command} --help`], cwd)).toContain(`gatehouse ${command} `)
  }
}

/** Pastes the lines of the command that the gateway prints: a login, requests, and the five SCIM calls. */
async function pasteLines({ url, output }: Served, cwd: string): Promise<void> {
  const linesOf = (text: string): string[] =>
    [...text.matchAll(/^ {2}((?:[A-Z_]+=|curl |\S*gatehouse ).*)$/gm)].map(([, line = '']) => line)
  const [examples = ''] = linesOf(output())
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
  expect(await run(join(home, 'bin/gatehouse'), ['--version'])).toContain(version)
  const commit = await run('git', ['rev-parse', 'HEAD'], resolve('.'))
  expect(await run(join(home, 'bin/gatehouse'), ['version'])).toContain(commit.trim())
  expect(readFileSync(join(home, 'README.md'), 'utf8')).not.toMatch(/\bnp[mx]\b/)
  await followReadme(join(home, 'README.md'), { cwd: home, home: unpacked })
  expect(readdirSync(unpacked)).toEqual([name])
})

test.concurrent('the npm package is installed, runs, has the types of plug-ins, and is uninstalled', {
  timeout,
}, async () => {
  const home = join(folder, 'project')
  mkdirSync(home)
  writeFileSync(join(home, 'package.json'), '{"private": true, "type": "module"}')
  await followReadme(join(released, 'gatehouse/README.md'), { cwd: home, home: folder })
  const installed = join(home, 'node_modules', packageName)
  const [, kilobytes = '0'] = /^(\d+)/.exec(await run('du', ['-sk', installed])) ?? []
  expect(Number(kilobytes)).toBeLessThan(40_000)
  expect(
    globSync('*', { cwd: join(home, 'node_modules') }).filter((one) => !/^(?:@gatehouse-iam|node-linux-.*)$/.test(one)),
  ).toEqual([])
  writeFileSync(
    join(home, 'task.ts'),
    "import type { PluginUser } from '@gatehouse-iam/gatehouse/plugin'\nexport const user: PluginUser = { userID: 1 }\n",
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
  expect((await ended(process.execPath, tsc, home)).stdout).toMatch(
    /^task\.ts\(2,.*Type 'number' is not assignable to type 'string'/,
  )
  writeFileSync(
    join(home, 'task.ts'),
    "import type { PluginUser } from '@gatehouse-iam/gatehouse/plugin'\nexport const idOf = (user: PluginUser): string => user.userID\n",
  )
  expect((await ended(process.execPath, tsc, home)).stdout).toBe('')
  expect(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))).not.toHaveProperty('private')
  expect(readFileSync(join(installed, 'README.md'))).toEqual(readFileSync(join(released, 'gatehouse/README.md')))
  // As README says.
  const everywhere = join(home, 'everywhere')
  await run('npm', ['install', '--global', '--prefix', everywhere, '--no-audit', join(released, packed)], home)
  const other = await run(join(everywhere, 'bin/gatehouse'), ['init', 'other', '--domain', 'idm.example.test'], home)
  expect(other).toContain('SCIM token')
  await run('npm', ['uninstall', packageName], home)
  expect([existsSync(installed), existsSync(join(home, 'node_modules/.bin/gatehouse'))]).toEqual([false, false])
})

test('an archive is made beside nothing that another one writes', async () => {
  const parent = join(folder, 'archived')
  mkdirSync(join(parent, 'chart'), { recursive: true })
  writeFileSync(join(parent, 'chart', 'file'), 'content')
  // Where tar could not write.
  mkdirSync(join(parent, 'chart.tar'))
  writeArchive(join(folder, 'archived.tgz'), join(parent, 'chart'), ['file'])
  expect(await run('tar', ['-tzf', join(folder, 'archived.tgz')])).toBe('file\n')
})
