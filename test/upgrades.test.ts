import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { readMigrations } from '#database/migrations.ts'
import { migrationsIn } from './upgrades/dump.ts'

const dialects = ['sqlite', 'postgres'] as const
/** The versions that have a heading of their own in the changelog. */
const released = Array.from(readFileSync('CHANGELOG.md', 'utf8').matchAll(/^## (\d+\.\d+\.\d+)\b/gm), ([, one]) => one)

test('every release has a dump of each database, and its migrations are unchanged', () => {
  for (const version of released) {
    for (const dialect of dialects) {
      const file = `test/upgrades/${version}/${dialect}.sql`
      expect(existsSync(file), file).toBe(true)
      const now = new Map(readMigrations(dialect).map(({ name, hash }) => [name, hash]))
      for (const { name, hash } of migrationsIn(readFileSync(file, 'utf8'))) expect(now.get(name), name).toBe(hash)
    }
  }
})

test('a dump names the migrations of its release', () => {
  const dumps = globSync('test/upgrades/*.*.*/*.sql')
  expect(dumps.length).toBeGreaterThanOrEqual(2)
  for (const file of dumps) expect(migrationsIn(readFileSync(file, 'utf8')).length, file).toBeGreaterThan(0)
})

/** Statements that break a replica of the version before. See docs/guides/upgrading.md. */
const breaking: Readonly<Record<string, RegExp>> = {
  'removes a table, column or view': /\bdrop\s+(?:table|column|view)\b/i,
  'renames a table or column': /\brename\b/i,
  'changes the type of a column': /\balter\s+column\s+\w+\s+(?:set\s+data\s+)?type\b/i,
  'makes a column required': /\bset\s+not\s+null\b/i,
  'adds a required column without a default': /\badd\s+column\s+(?![^;]*\bdefault\b)[^;]*\bnot\s+null\b/i,
  'adds a rule that old writers may violate': /\bcreate\s+unique\s+index\b|\badd\s+constraint\b/i,
}
/** On a line of its own, with the version whose program last used what it removes. */
const contraction = /^-- contract: not used since \d+\.\d+\.\d+$/m

const problems = (script: string): string[] => {
  if (contraction.test(script)) return []
  const statements = script.replaceAll(/--.*$/gm, '')
  return Object.entries(breaking).flatMap(([problem, pattern]) => (pattern.test(statements) ? [problem] : []))
}

test('a migration after the first leaves the version before it able to serve', () => {
  const later = globSync(['src/database/migrations/*/*.sql', 'test/upgrades/next/*/*.sql']).filter(
    (file) => basename(file) !== '0001_initial.sql',
  )
  expect(later.length).toBeGreaterThanOrEqual(2)
  for (const file of later) expect(problems(readFileSync(file, 'utf8')), file).toEqual([])
})

test.each([
  ['drop table runs;', 'removes a table, column or view'],
  ['alter table runs drop column data;', 'removes a table, column or view'],
  ['alter table runs rename to walks;', 'renames a table or column'],
  ['alter table runs alter column due type text;', 'changes the type of a column'],
  ['alter table runs alter column due set not null;', 'makes a column required'],
  ['alter table runs add column a text not null;', 'adds a required column without a default'],
  ['create unique index one on runs (subject);', 'adds a rule that old writers may violate'],
])('%s is found', (script, problem) => {
  expect(problems(script)).toEqual([problem])
  expect(problems(`-- contract: not used since 0.4.0\n${script}`)).toEqual([])
})

test('additions pass', () => {
  expect(
    problems("alter table runs add column a text not null default '';\ncreate table b (c text not null);"),
  ).toEqual([])
})
