import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import process from 'node:process'
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { commands } from '#cli/commands.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { readRpm } from '#testing/release/rpm-file.ts'
import { ended, run } from '#testing/release/run-program.ts'
import { serving } from '#testing/release/served.ts'
import { architecture } from '#testing/release/unpacked-image.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'

const { folder: released, scratch } = inject('release')
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
const debian = (of: string): string => join(released, `packages/gatehouse_${version}_${of}.deb`)
const redHat = (of: string): string => join(released, `packages/gatehouse-${version}-1.${of}.rpm`)
const isRoot = process.getuid?.() === 0

test('there are packages of both kinds for both processors', () => {
  expect(readdirSync(join(released, 'packages')).sort()).toEqual(
    [debian('amd64'), debian('arm64'), redHat('aarch64'), redHat('x86_64')].map((file) => basename(file)).sort(),
  )
})

test.each([
  ['amd64', '3e 00'],
  ['arm64', 'b7 00'],
])('the package of Debian for %s says what it is and needs, and has its Node.js', async (of, machine) => {
  const info = await run('dpkg-deb', ['--info', debian(of)])
  expect(info).toMatch(new RegExp(`^ Version: ${RegExp.escape(version)}-1$`, 'm'))
  expect(info).toMatch(new RegExp(`^ Architecture: ${of}$`, 'm'))
  expect(info).toMatch(/^ Depends: libc6 \(>= 2\.28\), libstdc\+\+6 .*passwd$/m)
  expect(await run('dpkg-deb', ['--info', debian(of), 'conffiles'])).toBe('/etc/gatehouse/environment\n')
  // The processor of a program, in its header.
  const node = 'tar -xO ./usr/lib/gatehouse/node/bin/node 2>/dev/null | head -c 20 | od -An -tx1 -j18'
  const header = await run('sh', ['-c', `dpkg-deb --fsys-tarfile '${debian(of)}' 2>/dev/null | ${node}`])
  expect(header.trim()).toBe(machine)
})

describe.skipIf(!isRoot)('the script before the installation', () => {
  test.each([
    ['neither', '', ''],
    ['a group that was left', '', 'gatehouse:x:500:\n'],
    ['a user of another group', 'gatehouse:x:500:0::/:/bin/sh\n', ''],
    ['both', 'gatehouse:x:500:500::/:/bin/sh\n', 'gatehouse:x:500:\n'],
  ])('makes what is missing where there is %s', async (name, users, groups) => {
    const root = join(scratch, `users of ${name}`)
    mkdirSync(join(root, 'etc'), { recursive: true })
    const files = { passwd: users, group: groups } as const
    for (const [file, more] of Object.entries(files)) {
      writeFileSync(join(root, 'etc', file), `root:x:0:${file === 'passwd' ? '0:root:/root:/bin/sh' : ''}\n${more}`)
    }
    writeFileSync(join(root, 'etc/shadow'), '')
    await run('sh', ['release/packages/before-install.sh'], process.cwd(), { ...process.env, DPKG_ROOT: root })
    for (const [file, more] of Object.entries(files)) {
      const own = readFileSync(join(root, 'etc', file), 'utf8').match(/^gatehouse:.*\n/gm)
      expect([file, own]).toEqual([file, [more === '' ? expect.stringMatching(/^gatehouse:[x!]:[1-9]/) : more]])
    }
  })
})

// dpkg sets owners.
describe.skipIf(!isRoot)('installed by dpkg below another root', () => {
  const root = join(scratch, 'debian')
  const home = join(root, 'usr/lib/gatehouse')
  const dpkg = (...args: readonly string[]) =>
    run('dpkg', [`--root=${root}`, '--force-script-chrootless', '--force-depends', '--log=/dev/null', ...args])
  let user = { uid: 0, gid: 0 }

  beforeAll(async () => {
    for (const folder of ['var/lib/dpkg/info', 'var/lib/dpkg/updates', 'etc']) {
      mkdirSync(join(root, folder), { recursive: true })
    }
    for (const file of ['status', 'available']) writeFileSync(join(root, 'var/lib/dpkg', file), '')
    writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n')
    writeFileSync(join(root, 'etc/group'), 'root:x:0:\n')
    writeFileSync(join(root, 'etc/shadow'), '')
    await dpkg('--install', debian(architecture))
    const [, , uid, gid] = /^gatehouse:.*$/m.exec(readFileSync(join(root, 'etc/passwd'), 'utf8'))?.[0].split(':') ?? []
    user = { uid: Number(uid), gid: Number(gid) }
  }, 360_000)

  test('it has a user of its own without a login, who cannot change the program', async () => {
    const [line] = /^gatehouse:.*$/m.exec(readFileSync(join(root, 'etc/passwd'), 'utf8')) ?? []
    expect(line).toMatch(/^gatehouse:x:[1-9]\d*:[1-9]\d*:.*:\/var\/lib\/gatehouse:\/usr\/sbin\/nologin$/)
    expect(await run('find', [join(root, 'usr'), '!', '-user', 'root', '-o', '-perm', '/022', '!', '-type', 'l'])).toBe(
      '',
    )
    const access = (file: string): string => {
      const { mode, uid, gid } = statSync(join(root, file))
      return `${(mode & 0o7777).toString(8)} ${uid} ${gid === user.gid ? 'gatehouse' : gid}`
    }
    expect(['etc/gatehouse', 'etc/gatehouse/config', 'etc/gatehouse/environment'].map(access)).toEqual([
      '750 0 gatehouse',
      '750 0 gatehouse',
      '600 0 0',
    ])
  })

  /** As systemd starts the service, without its capabilities. */
  const asUser = (): string[] => [
    ...[`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', '--no-new-privs'],
    ...['--bounding-set=-all', '--inh-caps=-all', '--'],
  ]

  const operator = join(scratch, 'administrator')
  /** Runs the lines of a section below the other root, without those of apt and systemctl. */
  async function follow(page: string, title: string, skipped: number) {
    const [, section = ''] = new RegExp(`\\n## ${title}\\n(.*?)\\n## `, 's').exec(readFileSync(page, 'utf8')) ?? []
    const blocks = Array.from(section.matchAll(/^```\n(.*?)^```$/gms), ([, block = '']) => block)
    const lines = blocks.join('').trim().split('\n')
    const own = lines.filter((line) => !/^(?:apt|systemctl) /.test(line))
    expect(lines.length - own.length).toBe(skipped)
    mkdirSync(operator, { recursive: true })
    const script = own
      .join('\n')
      .replaceAll(/\/(?:etc|var\/lib|var\/backups)\/gatehouse/g, (folder) => `${root}${folder}`)
      .replace(/^gatehouse init .*$/m, (line) => `${line} --domain idm.example.test`)
      .replaceAll('chown -R gatehouse:', `chown -R ${user.uid}:${user.gid}`)
      .replace('-o gatehouse', `-o ${user.uid}`)
      // Its user is not one of this machine, so that its name is not known here.
      .replace('user add admin', 'user add admin --by operator')
      .replaceAll('runuser -u gatehouse --', `echo 'Correct-horse-9' | setpriv ${asUser().join(' ')}`)
    const path = `${join(root, 'usr/bin')}:/usr/bin:/bin`
    return ended('sh', ['-euc', script], operator, { PATH: path, HOME: operator })
  }

  test('the first gateway is made by the lines of the guide', async () => {
    await placeData()
    const made = await follow('docs/guides/installing.md', 'Packages for Debian and Red Hat', 2)
    expect(made).toEqual({ code: 0, stdout: expect.stringContaining('SCIM token'), stderr: expect.anything() })
    const { mode, uid } = statSync(join(root, 'etc/gatehouse/tls/tls.key'))
    expect([mode & 0o777, uid]).toEqual([0o600, user.uid])
    // The service can write to the folder of its data only.
    expect(readFileSync(join(config, 'audit.yaml'), 'utf8')).toMatch(/^ +file: audit\/anchors\.jsonl$/m)
  })

  test('it is backed up and checked by the lines of the guide before an upgrade', async () => {
    const { code, stdout, stderr } = await follow('docs/guides/upgrading.md', 'Packages', 3)
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.anything() })
    expect(stdout).toContain('before-upgrade.db')
    expect(statSync(join(root, 'var/backups/gatehouse/before-upgrade.db')).uid).toBe(user.uid)
  })

  const config = join(root, 'etc/gatehouse/config')
  const data = join(root, 'var/lib/gatehouse')
  /** As systemd makes the folder of the state. */
  const placeData = async (): Promise<void> => {
    await run('rm', ['-rf', data])
    await run('install', ['-d', '-m', '700', '-o', String(user.uid), '-g', String(user.gid), data])
  }

  test('the service runs as its user, and writes to its own folders only', async () => {
    await run('sh', ['-c', `rm -rf '${config}'/*`])
    cpSync('examples/quickstart', config, { recursive: true })
    await run('chown', ['-R', `${user.uid}:${user.gid}`, config])
    await placeData()
    const unit = readFileSync(join(root, 'usr/lib/systemd/system/gatehouse.service'), 'utf8')
    const [, started = ''] = /^ExecStart=(.*) \$GATEHOUSE_OPTIONS$/m.exec(unit) ?? []
    const [program = '', ...words] = started.split(' ').map((word) => (word.startsWith('/') ? join(root, word) : word))
    const url = `http://127.0.0.1:${await freePort()}`
    const args = [...asUser(), program, ...words, '--listen', new URL(url).host, '--metrics', 'off']
    const env = { PATH: '/usr/bin:/bin', GATEHOUSE_URL: url }
    await run('touch', [join(scratch, 'before')])
    await serving({ program: 'setpriv', args, cwd: '/', env, url }, async () => {
      const ada = await PortalPerson.logIn({ url }, 'ada')
      expect((await ada.get('/main/user')).json).toMatchObject({ uid: 'ada' })
    })
    expect(existsSync(join(data, 'gatehouse.db'))).toBe(true)
    const written = await run('find', [root, '-newer', join(scratch, 'before'), '-user', `${user.uid}`])
    expect(
      written
        .trim()
        .split('\n')
        .filter((file) => !file.startsWith(data)),
    ).toEqual([])
  })

  test('the command works by its name, and every command has a manual page', async () => {
    expect(await run(join(root, 'usr/bin/gatehouse'), ['--help'])).toContain('gatehouse COMMAND')
    const pages = globSync('usr/share/man/man1/*.1.gz', { cwd: root }).map((file) => basename(file, '.1.gz'))
    expect(pages.sort()).toEqual(['gatehouse', ...Object.keys(commands).map((name) => `gatehouse-${name}`)].sort())
    for (const page of pages) {
      const file = join(scratch, `${page}.1`)
      writeFileSync(file, gunzipSync(readFileSync(join(root, `usr/share/man/man1/${page}.1.gz`))))
      const { code, stdout, stderr } = await ended('groff', ['-man', '-ww', '-Tascii', '-P-cbou', file])
      expect({ page, code, stderr }).toEqual({ page, code: 0, stderr: '' })
      expect(stdout).toMatch(/^NAME$[\s\S]*^SYNOPSIS$[\s\S]*^SEE ALSO$/m)
    }
  })

  test('the shells complete its words, if it can tell them', () => {
    const made = globSync(['usr/share/bash-completion/completions/*', 'usr/share/fish/vendor_completions.d/*'], {
      cwd: root,
    })
    expect(made).toHaveLength('completion' in commands ? 2 : 0)
  })

  test('systemd accepts the unit, and finds it well protected', async () => {
    const name = 'usr/lib/systemd/system/gatehouse.service'
    const [own, copy] = [readFileSync(join(root, name), 'utf8'), join(scratch, 'gatehouse.service')]
    // The other units are those of this machine.
    writeFileSync(copy, own.replace('=/usr/bin/', `=${root}/usr/bin/`))
    expect(await ended('systemd-analyze', ['verify', '--man=no', copy])).toEqual({ code: 0, stdout: '', stderr: '' })
    // Of 100; an ordinary service has 96. It fails above the threshold.
    const security = await run('systemd-analyze', [
      'security',
      '--offline=true',
      '--threshold=20',
      '--no-pager',
      join(root, name),
    ])
    console.log(security.trim().split('\n').at(-1))
    const inside = `gatehouse-${version}-linux-${architecture}`
    const unitOfArchive = `${inside}/systemd/gatehouse.service`
    const archive = await run('tar', ['-xzOf', join(released, `${inside}.tar.gz`), unitOfArchive])
    expect(archive).toBe(own.replace('=/usr/bin/', '=/opt/gatehouse/bin/').replace(/^Documentation=.*\n/m, ''))
  })

  test('the package of RPM has the same files, and its payload those of its header', async () => {
    const rpm = readRpm(redHat(architecture === 'amd64' ? 'x86_64' : 'aarch64'))
    expect(rpm).toMatchObject({ name: 'gatehouse', version: `${version}-1` })
    expect(rpm.requires).toEqual(expect.arrayContaining(['glibc', 'libstdc++', 'shadow-utils']))
    expect(rpm.scripts).toEqual(
      ['before-install', 'after-install', 'before-remove'].map((name) =>
        readFileSync(`release/packages/${name}.sh`, 'utf8'),
      ),
    )
    const listed = (await run('dpkg', [`--root=${root}`, '--listfiles', 'gatehouse'])).trim().split('\n')
    const isOwn = (path: string): boolean => !lstatSync(join(root, path)).isDirectory()
    const mine = (path: string): string => path.replace('site-functions', 'vendor-completions')
    const files = rpm.files.filter(({ mode }) => (mode & 0o170000) !== 0o040000)
    expect(files.map(({ path }) => mine(path)).sort()).toEqual(listed.filter(isOwn).sort())
    for (const { path, mode, owner, group, digest, link } of rpm.files) {
      const place = join(root, mine(path))
      const stat = lstatSync(place)
      const expected = {
        path,
        type: stat.mode & 0o170000,
        owner: 'root',
        group: path.startsWith('/etc/gatehouse') && stat.isDirectory() ? 'gatehouse' : 'root',
      }
      expect({ path, type: mode & 0o170000, owner, group }).toEqual(expected)
      if (stat.isSymbolicLink()) expect(link).toBe('../lib/gatehouse/bin/gatehouse')
      else expect((mode & 0o7777).toString(8)).toBe((stat.mode & 0o7777).toString(8))
      if (!stat.isFile() || path.startsWith('/etc/')) continue
      const hash = createHash('sha256').update(readFileSync(place)).digest('hex')
      expect({ path, digest, payload: rpm.payload.get(path) }).toEqual({ path, digest: hash, payload: hash })
    }
    expect(rpm.payload.get('/etc/gatehouse/environment')).toHaveLength(64)
  })

  test('removing it leaves the configuration and the data', async () => {
    mkdirSync(join(home, 'node_modules/.cache'), { recursive: true })
    await dpkg('--remove', 'gatehouse')
    expect([existsSync(home), existsSync(join(root, 'usr/bin/gatehouse'))]).toEqual([false, false])
    expect(existsSync(join(root, 'etc/gatehouse/environment'))).toBe(true)
    expect(existsSync(join(root, 'var/lib/gatehouse/gatehouse.db'))).toBe(true)
    expect(readFileSync(join(root, 'etc/passwd'), 'utf8')).toContain('gatehouse:')
  })
})

// rpm sets owners, and runs below another root.
describe.skipIf(!isRoot)('installed by rpm below another root', () => {
  const root = join(scratch, 'red-hat')
  const rpm = (...args: readonly string[]) => run('rpm', [`--root=${root}`, '--force-debian', ...args])
  // The scripts need a shell there, and the packages that it depends on are those of Red Hat.
  const alone = ['--nodeps', '--noscripts']

  test('it is there as its database says, and leaves nothing', { timeout: 360_000 }, async () => {
    mkdirSync(join(root, 'etc'), { recursive: true })
    writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\ngatehouse:x:990:990::/:/bin/false\n')
    writeFileSync(join(root, 'etc/group'), 'root:x:0:\ngatehouse:x:990:\n')
    await rpm('--install', ...alone, redHat(architecture === 'amd64' ? 'x86_64' : 'aarch64'))
    expect(await rpm('--query', 'gatehouse')).toMatch(new RegExp(`^gatehouse-${RegExp.escape(version)}-1\\.`))
    expect(await rpm('--verify', ...alone, 'gatehouse')).toBe('')
    expect(statSync(join(root, 'etc/gatehouse')).gid).toBe(990)
    const program = join(root, 'usr/lib/gatehouse/bin/gatehouse')
    expect(await run(program, ['version'])).toContain(version)
    await rpm('--erase', ...alone, 'gatehouse')
    expect(existsSync(program)).toBe(false)
  })
})
