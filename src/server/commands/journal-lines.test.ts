import { expect, test } from 'vitest'
import type { StoredJournalEntry } from '#domain/journal.ts'
import { journalJson, journalLines } from '#server/commands/journal-lines.ts'

const row = (more: Partial<StoredJournalEntry> = {}): StoredJournalEntry => ({
  id: 7,
  journal: 'scim-people',
  time: new Date('2030-01-02T03:04:05.678Z'),
  requestId: 'r-1',
  caller: 'idp',
  method: 'GET',
  path: '/scim/Users/42',
  status: 200,
  millis: 3,
  workflows: [],
  ...more,
})

test('a call that only read is one line', () => {
  expect(journalLines(row(), 160)).toEqual(['2030-01-02T03:04:05.678Z 200 GET    /scim/Users/42 (3 ms)'])
})

test('a call that ran a workflow tells which, also where it names no attribute', () => {
  expect(journalLines(row({ method: 'DELETE', status: 204, workflows: ['run-1'] }), 160)).toEqual([
    '2030-01-02T03:04:05.678Z 204 DELETE /scim/Users/42 (3 ms)',
    '    scim-people, idp, request r-1, run run-1',
  ])
})

test('a call that failed tells why, what it wanted, and where to look on', () => {
  const failed = row({
    method: 'PATCH',
    status: 400,
    keyword: 'invalidPath',
    error: 'There is no attribute "foo".',
    workflows: ['run-1'],
    operations: [{ op: 'add', path: 'members', count: 3 }, { op: 'remove', path: 'emails[type eq ?]' }, { more: 2 }],
  })
  expect(journalLines(failed, 160)).toEqual([
    '2030-01-02T03:04:05.678Z 400 PATCH  /scim/Users/42 (3 ms)',
    '    invalidPath: There is no attribute "foo".',
    '    add members (3); remove emails[type eq ?]; 2 more',
    '    scim-people, idp, request r-1, run run-1',
  ])
  const many = journalLines(row({ operations: [], error: 'x', workflows: ['a', 'b', 'c', 'd'] }), 160)
  expect(many.at(-1)).toBe('    scim-people, idp, request r-1, 4 runs')
})

test('no line is longer than the terminal, and none can play tricks on it', () => {
  const nasty = row({ path: `/\u001b[2J\u202e\n${'x'.repeat(500)}`, error: '\u009b31m', operations: ['x', 1, null] })
  const lines = journalLines(nasty, 80)
  for (const line of lines) {
    expect(line.length).toBeLessThanOrEqual(80)
    expect(line).not.toMatch(/[\p{Cc}\u202e]/u)
  }
  expect(journalLines(row(), 1)[0]).toHaveLength(40)
})

test('for programs it is one object on one line', () => {
  const [line = ''] = journalJson(row({ error: 'a\nb', keyword: 'invalidPath' }))
  expect(line).not.toContain('\n')
  expect(JSON.parse(line)).toMatchObject({
    id: 7,
    gateway: 'scim-people',
    time: '2030-01-02T03:04:05.678Z',
    error: 'a\nb',
    scimType: 'invalidPath',
  })
})
