import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readDirectory } from './folder-documents.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-config-'))
})
afterEach(() => rm(folder, { recursive: true }))

async function write(name: string, text: string | Buffer = 'a: 1\n'): Promise<void> {
  await mkdir(join(folder, name, '..'), { recursive: true })
  await writeFile(join(folder, name), text)
}

test('a named pipe, a folder and a large file in keys/ are problems, and none blocks', async () => {
  await write('keys/large.pem', Buffer.alloc(1024 * 1024 + 1))
  await mkdir(join(folder, 'keys', 'folder.crt'))
  execFileSync('mkfifo', [join(folder, 'keys', 'pipe.key')])
  await symlink('absent', join(folder, 'keys', 'absent.key'))
  const { keys, problems } = await readDirectory(folder)
  expect(keys.size).toBe(0)
  expect(problems).toEqual([
    { name: 'keys/folder.crt', message: 'is not a file' },
    { name: 'keys/large.pem', message: 'is larger than 1048576 bytes' },
    { name: 'keys/pipe.key', message: 'is not a file' },
  ])
})

test('reads YAML of all sub-folders in order, and nothing else', async () => {
  for (const name of ['b.yml', 'a.yaml', 'sub/deep/c.yaml', 'sub/keys/d.yaml', 'notes.txt', '.hidden.yaml']) {
    await write(name)
  }
  for (const name of ['keys/x.pem', 'keys/y.txt', 'keys/not.yaml', 'secrets/s/k.yaml', '.git/z.yaml']) await write(name)
  const { files, keys, problems } = await readDirectory(folder)
  expect(files.map(({ name }) => name)).toEqual(['a.yaml', 'b.yml', 'sub/deep/c.yaml', 'sub/keys/d.yaml'])
  expect([...keys.keys()]).toEqual([])
  expect(problems).toEqual([{ name: 'keys/x.pem', message: 'holds neither a certificate nor a key in PEM form' }])
})

test('follows the links of a mounted ConfigMap, and no loop', async () => {
  await write('..data/a.yaml')
  await symlink(join('..data', 'a.yaml'), join(folder, 'a.yaml'))
  await symlink('.', join(folder, 'loop'))
  await symlink('absent', join(folder, 'dangling.yaml'))
  await symlink('self.yaml', join(folder, 'self.yaml'))
  const { files, problems } = await readDirectory(folder)
  expect(files.map(({ name }) => name)).toEqual(['a.yaml'])
  expect(problems).toEqual([
    { name: 'dangling.yaml', message: 'does not exist' },
    { name: 'self.yaml', message: 'is a link that leads to itself' },
  ])
})

test('an absent folder, a file that is not text and one that is too large are problems', async () => {
  expect((await readDirectory(join(folder, 'absent'))).problems).toEqual([
    { name: join(folder, 'absent'), message: 'does not exist', whole: true },
  ])
  await write('binary.yaml', Buffer.from([0xff, 0xfe, 0x00]))
  await write('large.yaml', 'x'.repeat(2000))
  const { problems } = await readDirectory(folder, { files: 10, fileBytes: 1000, totalBytes: 10_000, depth: 3 })
  expect(problems.map(({ name }) => name)).toEqual(['binary.yaml', 'large.yaml'])
})

test('the number of files, their sum and the depth are limited, each reported once', async () => {
  for (let i = 0; i < 6; i++) await write(`f${i}.yaml`)
  await write('d1/d2/d3/x.yaml')
  const { files, problems } = await readDirectory(folder, { files: 3, fileBytes: 100, totalBytes: 1000, depth: 2 })
  expect(files).toHaveLength(3)
  expect(problems.map(({ message }) => message)).toEqual([
    'folders are nested deeper than 2',
    'the folder holds more than 3 files or 1000 bytes: this and later files are not read',
  ])
})
