import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { fileFailure } from './file-failure.ts'

const thrownBy = (work: () => unknown): unknown => {
  try {
    return work()
  } catch (error) {
    return error
  }
}

test('an error of the operating system names the file and what to do', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-failure-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const below = join(file, 'data')
  expect(fileFailure(thrownBy(() => mkdirSync(below)))).toBe(
    `${below} cannot be used: a part of the path is not a folder. Choose another place`,
  )
})

/** As Node.js throws them; a test can't mount a file system or fill a disk. */
const errno = (code: string): Error =>
  Object.assign(new Error(`${code}: no, chmod '/data/gatehouse.db.lock'`), { code, path: '/data/gatehouse.db.lock' })

test.each([
  ['EROFS', 'the file system is read-only. Mount it writable'],
  ['EACCES', `Give /data/gatehouse.db.lock to the user ${process.getuid?.()} that runs this program`],
  ['ENOSPC', 'the disk is full. Free some space'],
])('%s has advice', (code, text) => {
  expect(fileFailure(errno(code))).toContain(`/data/gatehouse.db.lock cannot be used: `)
  expect(fileFailure(errno(code))).toContain(text)
})

test('a folder that cannot be created is named', () => {
  // What Node.js throws on a read-only file system.
  const error = Object.assign(errno('ENOENT'), { syscall: 'mkdir', path: '/data/new' })
  expect(fileFailure(error)).toMatch(/^\/data\/new cannot be created: its file system is read-only/)
})

test('other errors are left to others', () => {
  for (const error of [new Error('x'), errno('ENOENT'), errno('constructor'), 'text', undefined])
    expect(fileFailure(error)).toBeUndefined()
})
