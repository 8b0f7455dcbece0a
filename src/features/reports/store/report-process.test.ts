import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'

function start(sql: string): ChildProcess {
  const file = join(temporaryFolder(), 'test.db')
  const database = new DatabaseSync(file)
  database.exec(`create table t (a); create view report_t as select a from t;
    with recursive n (i) as (select 1 union all select i + 1 from n where i < 2000) insert into t select i from n`)
  database.close()
  const program = fileURLToPath(new URL('./report-process.ts', import.meta.url))
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'ignore'], env: {} })
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stdin?.write(`${JSON.stringify({ file, sql, values: [], limit: 10 })}\n`)
  return child
}

test('exits when the gateway has exited, while it is reading', async () => {
  const child = start('select count(*) from report_t a, report_t b, report_t c, report_t d')
  await once(child.stdout ?? child, 'data')
  child.stdin?.destroy()
  const [code, signal] = await once(child, 'exit', { signal: AbortSignal.timeout(10_000) })
  expect({ code, signal }).toEqual({ code: null, signal: 'SIGKILL' })
}, 20_000)

test('exits after writing all rows', async () => {
  const child = start('select a from report_t order by a limit 2')
  let output = ''
  child.stdout?.on('data', (text) => {
    output += text
  })
  const [code] = await once(child, 'close', { signal: AbortSignal.timeout(10_000) })
  expect(code).toBe(0)
  expect(
    output
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([{ columns: ['a'] }, { rows: [['1']] }, { rows: [['2']] }, { end: true }])
}, 20_000)
