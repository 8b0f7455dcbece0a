import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { NewGrant } from '#sdk/workflow/grant.ts'
import { openStorage } from '#server/composition/stores.ts'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { megabytesOf } from './process-figures.ts'
import { loginOf, seedPeople } from './seed.ts'

/**
 * Moves a gateway from SQLite to PostgreSQL and back by its commands, and compares the counts: `bin/node bench/move.ts`.
 * Every user and every grant has a record in the audit.
 */
const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '100000' },
    grants: { type: 'string', default: '10000' },
    folder: { type: 'string', default: '.' },
  },
})
const [users, grants] = [Number(values.users), Number(values.grants)]
const environment = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') }
const folder = mkdtempSync(join(values.folder, '.cache-move-'))
const postgres = await startPostgres()
try {
  const [one, two, three] = ['one', 'two', 'three'].map((name) => join(folder, name)) as [string, string, string]
  for (const data of [one, two, three]) mkdirSync(data, { mode: 0o700 })
  const started = performance.now()
  await fill(one)
  console.log(`filled in ${seconds(performance.now() - started)}`)
  const onPostgres = ['--data', two, '--database', postgres.url]
  const [file, back] = [join(folder, 'one.jsonl'), join(folder, 'two.jsonl')]
  const lines = [
    await gatehouse('export', file, '--data', one),
    await gatehouse('import', file, ...onPostgres),
    await gatehouse('audit', 'verify', ...onPostgres),
    await gatehouse('export', back, ...onPostgres),
    await gatehouse('import', back, '--data', three),
    await gatehouse('audit', 'verify', '--data', three),
  ]
  console.log(`The file has ${Math.round(statSync(file).size / 1e6)} MB`)
  const counts = lines.flatMap((text) => text.split('\n').filter((line) => line.startsWith('Users and groups:')))
  const withoutAudit = counts.map((line) => line.replace(/, audit records: \d+$/, ''))
  if (counts.length !== 4 || new Set(withoutAudit).size !== 1) throw new Error('the counts differ')
} finally {
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}

function seconds(millis: number): string {
  return `${(millis / 1000).toFixed(1)} s`
}

async function fill(dataFolder: string): Promise<void> {
  await seedPeople(dataFolder, users)
  const auditKeys = await loadAuditKeys({ environment, dataFolder }, 'command')
  const storage = openStorage({ dataFolder, clock: systemClock, log: silentLogger, auditKeys })
  await storage.ready()
  await storage.audit.authenticate()
  const underWay = 256
  const each = async (count: number, work: (n: number) => Promise<unknown>): Promise<void> => {
    let next = 0
    await Promise.all(
      Array.from({ length: underWay }, async () => {
        while (next < count) await work(next++)
      }),
    )
  }
  await each(users, (n) => storage.audit.append([record(`user-${n}`, loginOf(n), 'mail', `${loginOf(n)}@example.com`)]))
  await each(grants, async (n) => {
    await storage.grants.add([grant(n)])
    await storage.audit.append([record(`grant-${n}`, loginOf(n % users), 'groups', `group${n % 1000}`)])
  })
  await storage.close()
}

function grant(n: number): NewGrant {
  const expires = { inMillis: 30 * 86_400_000 }
  return { id: `grant-${n}`, target: 'people', subject: loginOf(n % users), kind: 'group', name: `group${n}`, expires }
}

function record(id: string, subject: string, attribute: string, value: string): AuditEntry {
  const workflow = { id: `run of ${id}`, name: 'join' }
  const what = { kind: 'attribute', action: 'add', attribute, value } as const
  return { id, time: systemClock(), requestor: 'idp', subject, workflow, target: 'people', ...what }
}

/** What the command prints. Throws an Error unless it succeeds. */
async function gatehouse(...args: string[]): Promise<string> {
  const before = performance.now()
  const child = spawn('bin/gatehouse', args, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let [text, peak] = ['', 0]
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  const ended = once(child, 'close')
  while (child.exitCode === null && child.signalCode === null) {
    try {
      peak = Math.max(peak, megabytesOf(child.pid, 'VmHWM'))
    } catch {
      // It ended meanwhile.
    }
    await delay(100)
  }
  await ended
  console.log(
    `\n$ gatehouse ${args.slice(0, 2).join(' ')} …: ${seconds(performance.now() - before)}, ${Math.round(peak)} MB`,
  )
  console.log(text.trimEnd())
  if (child.exitCode !== 0) throw new Error(`it exited with ${child.exitCode}`)
  return text
}
