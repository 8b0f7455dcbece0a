import { expect, test } from 'vitest'
import { createAccessLog } from '#server/access-log.ts'

const entry = {
  requestId: 'r1',
  method: 'GET',
  host: 'a.test',
  path: '/x"\n{',
  status: 200,
  ms: 1.5,
  application: 'app',
  subject: undefined,
  remote: '127.0.0.1',
}

test('writes one line of JSON for a request, whatever stands in its fields', () => {
  const lines: string[] = []
  createAccessLog('info', (line) => lines.push(line))(entry)
  expect(lines).toHaveLength(1)
  expect(lines[0]?.split('\n')).toHaveLength(2)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 30, msg: 'request', path: '/x"\n{', status: 200 })
})

test.each(['warn', 'error', 'silent'] as const)('writes nothing at level %s', (level) => {
  const lines: string[] = []
  createAccessLog(level, (line) => lines.push(line))(entry)
  expect(lines).toEqual([])
})
