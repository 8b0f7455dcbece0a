import { renameSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { DatabaseSync, StatementSync } from 'node:sqlite'

/**
 * Loaded by `--import` before a gateway: counts the statements and commits of its SQLite connections, and writes both to
 * the file in BENCH_STATEMENTS at SIGUSR2.
 */
const file = process.env['BENCH_STATEMENTS'] ?? ''
const texts = new WeakMap<StatementSync, string>()
const counts = { statements: 0, commits: 0 }

function count(text: string): void {
  counts.statements++
  if (/^\s*commit\b/i.test(text)) counts.commits++
}

const { exec, prepare } = DatabaseSync.prototype
DatabaseSync.prototype.exec = function (text) {
  count(text)
  exec.call(this, text)
}
DatabaseSync.prototype.prepare = function (text, ...options) {
  const statement = prepare.call(this, text, ...options)
  texts.set(statement, text)
  return statement
}
for (const name of ['run', 'get', 'all', 'iterate'] as const) {
  const method = StatementSync.prototype[name] as (...values: unknown[]) => unknown
  Object.defineProperty(StatementSync.prototype, name, {
    value(this: StatementSync, ...values: unknown[]): unknown {
      count(texts.get(this) ?? '')
      return method.apply(this, values)
    },
  })
}

if (file !== '') {
  process.on('SIGUSR2', () => {
    writeFileSync(`${file}.new`, JSON.stringify(counts))
    renameSync(`${file}.new`, file)
  })
}
