import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { temporaryFolder } from '#testing/databases.ts'
import { missingPart, missingPartsFile } from '#testing/missing-part.ts'

afterEach(() => vi.unstubAllEnvs())

test('a missing part is told by name and reason to whoever runs the tiers', () => {
  const file = join(temporaryFolder(), 'missing')
  vi.stubEnv('CI', '')
  vi.stubEnv(missingPartsFile, file)
  missingPart('Python', new Error('a long story\nspawn python3 ENOENT\n'))
  missingPart('PostgreSQL', 'no port')
  expect(readFileSync(file, 'utf8')).toBe('Python (spawn python3 ENOENT)\nPostgreSQL (no port)\n')
})

test('in CI it fails the run, with its cause', () => {
  vi.stubEnv('CI', 'true')
  const cause = new Error('spawn python3 ENOENT')
  expect(() => missingPart('Python', cause)).toThrowError(expect.objectContaining({ cause }))
})
