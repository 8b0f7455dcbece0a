import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { NamedFiles } from '#config/secrets.ts'

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
