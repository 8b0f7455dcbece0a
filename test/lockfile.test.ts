import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

it('names no engines in package-lock.json, for which an older npm would leave out optional packages', () => {
  const lock: { packages: Record<string, { engines?: unknown }> } = JSON.parse(
    readFileSync('package-lock.json', 'utf8'),
  )
  const entries = Object.entries(lock.packages)
  expect(entries.length).toBeGreaterThan(100)
  expect(
    entries.filter(([, { engines }]) => engines !== undefined).map(([path]) => path),
    'Run `npm run lockfile`.',
  ).toEqual([])
})
