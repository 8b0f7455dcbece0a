import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SecretValues } from '#kernel/secret-values.ts'
import { NamedFiles, SecretSource } from './secrets.ts'

let root = ''
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'gatehouse-secrets-'))
  await mkdir(join(root, 'secrets', 'db'), { recursive: true })
  await writeFile(join(root, 'secrets', 'db', 'pass.word'), 'from file\n')
  await writeFile(join(root, 'outside'), 'outside')
})
afterAll(() => rm(root, { recursive: true }))

const source = (environment = {}) => new SecretSource(join(root, 'secrets'), environment, new SecretValues())

describe('secrets', () => {
  test('come from the folder first, without the last line ending, then from the environment', () => {
    const secrets = source({ DB_PASS_WORD: 'from environment', DB_OTHER: 'x' })
    expect(secrets.read('db', 'pass.word')).toEqual({ value: 'from file' })
    expect(secrets.read('db', 'other')).toEqual({ value: 'x' })
    expect([...secrets.used.keys()]).toEqual(['db/pass.word', 'db/other'])
    expect([...secrets.used.values()].join()).not.toContain('from file')
  })

  test('a missing one has the searched places', () => {
    expect(source().read('db', 'none')).toEqual({
      problem: 'no such secret (db/none in the secrets folder, DB_NONE in the environment)',
      absent: true,
    })
  })

  test('an unreadable file is a problem, unless another place has the secret', async () => {
    await mkdir(join(root, 'secrets', 'db', 'folder'))
    const problem = `${join(root, 'secrets', 'db', 'folder')} is not a file`
    expect(source().read('db', 'folder')).toEqual({ problem, absent: false })
    expect(source({ DB_FOLDER: 'x' }).read('db', 'folder')).toEqual({ value: 'x' })
  })

  test('no name leaves the folder', () => {
    const hostile = fc.string({ unit: fc.constantFrom('.', '/', '\\', 'outside', '\0', '%2e') })
    fc.assert(
      fc.property(hostile, hostile, (name, key) => {
        expect(source().read(name, key)).not.toHaveProperty('value')
      }),
    )
    expect(source().read('..', 'outside')).toMatchObject({ absent: false })
  })
})

test('files are read with a digest; an unreadable one has a reason', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-files-'))
  try {
    const file = join(folder, 'a.js')
    await writeFile(file, 'one')
    const files = new NamedFiles()
    expect(files.read(file)).toBe('one')
    const before = files.used.get(file)
    await writeFile(file, 'two')
    files.read(file)
    expect(files.used.get(file)).not.toBe(before)
    expect(() => files.read(join(folder, 'b.js'))).toThrow('b.js does not exist')
    expect(() => files.read(folder)).toThrow('cannot be read')
    await writeFile(file, 'x'.repeat((4 << 20) + 1))
    expect(() => files.read(file)).toThrow('is larger than')
  } finally {
    await rm(folder, { recursive: true })
  }
})
