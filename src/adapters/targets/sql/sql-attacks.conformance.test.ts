import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import type { Target } from '#sdk/target/target.ts'
import { onEachEmptyDatabase, temporaryFolder } from '#testing/databases/databases.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import {
  applicationParams,
  makeApplication,
  openApplication,
  openTarget,
  runOn,
} from '#testing/databases/sql-schema.ts'
import { hostileValues } from '#testing/hostile/hostile-values.ts'
import { hostileSeed, withSeed } from '#testing/hostile/sample.ts'

const names = { attributes: ['mail', 'givenName', 'phone'], groups: ['group1', 'group2', 'group3'] } as const
const requestFor = (target: Target) => targetFixture(target, names).request

const types = [
  ...['smallint', 'bigint', 'numeric', 'numeric(5,2)', 'real', 'double precision', 'boolean', 'oid', 'money'],
  ...['date', 'timestamp', 'timestamptz', 'time', 'interval', 'uuid', 'inet', 'macaddr', 'point', 'bit(3)'],
  ...['json', 'jsonb', 'jsonpath', 'xml', 'bytea', 'tsvector', 'tsquery', 'integer[]', 'int4range'],
  ...['mood', 'short', 'char(3)', 'varchar(3)', 'name'],
]

const strange = [
  ...['infinity', 'NaN', '1e400', '99999999999999999999', '9223372036854775808', '-32769', '1.005', '0x1f', '١٢'],
  ...['now', '2026-02-30', '294277-01-01', '0001-01-01 BC', '24:00:01', '2026-01-01T00:00:00+99:99', 'P1Y'],
  ...['\\x', '\\x00', '{', '{1,2', '[1:2147483647]={1}', '"\\u0000"', '<a>&b;</a>', '10.0.0.300', '(1,2', 'a & !'],
  ...['["', '{"a":', '('].map((text) => text.repeat(20_000)),
]

describe.skipIf(postgresUrl() === '')('a column of each type of PostgreSQL', () => {
  test(
    'stores a hostile text or rejects it as a bad request, and fails in no other way',
    () =>
      withSeed(async () => {
        const url = await freshSchema()
        await runOn(
          url,
          `create type mood as enum ('ok')`,
          'create domain short as text check (length(value) < 4)',
          `create table people (login text primary key, ${types.map((type, i) => `c${i} ${type}`).join(', ')})`,
        )
        const target = await openTarget(url, { userTable: 'people', userName: 'login', timeoutMillis: '120000' })
        onTestFinished(async () => target.close?.())
        const request = requestFor(target)
        await target.createUser(userOf('ada'), [], request)
        const values = [...strange, ...hostileValues(2, hostileSeed)]
        const failures = types.flatMap((type, i) =>
          values.map(async (value) => {
            const name = `c${i}`
            try {
              await target.syncUser(userOf('ada', { [name]: [value] }), syncOptions([name]), request)
            } catch (error) {
              if (error instanceof GatewayError && error.code === 'BAD_REQUEST') return []
              return [{ type, value: value.slice(0, 50), error: String(error).slice(0, 100) }]
            }
            return []
          }),
        )
        expect((await Promise.all(failures)).flat()).toEqual([])
      }),
    120_000,
  )
})

onEachEmptyDatabase('the words of a trigger', (freshUrl) => {
  test('are one short line of the message', async () => {
    const url = await freshUrl()
    const target = await openApplication(url)
    const words = `no\u001b[31m \u0007\u202e ${'x'.repeat(5000)}`
    const statements = url.startsWith('sqlite:')
      ? [`create trigger t before insert on addresses begin select raise(abort, '${words}'); end`]
      : [
          `create function f() returns trigger language plpgsql as $$ begin raise exception '%', '${words}'; end $$`,
          'create trigger t before insert on addresses for each row execute function f()',
        ]
    await runOn(url, ...statements)
    const attempt = target.createUser(userOf('ada', { mail: ['a'] }), ['mail'], requestFor(target))
    await expect(attempt).rejects.toMatchObject({
      code: 'TARGET_FAILED',
      message: expect.stringMatching(/^target "crm": no \[31m {2,3}x{900,1000}$/),
    })
  })
})

test('calls that wait for a locked SQLite file fail together, when the time of each is up', async () => {
  const url = `sqlite:${temporaryFolder()}/app.db`
  const target = await openApplication(url, { timeoutMillis: '300' })
  const other = new DatabaseSync(url.slice('sqlite:'.length))
  onTestFinished(() => other.close())
  other.exec('begin immediate')
  const since = performance.now()
  const calls = Array.from({ length: 10 }, (_, i) => target.createUser(userOf(`user${i}`), [], requestFor(target)))
  const codes = (await Promise.allSettled(calls)).map((call) => call.status === 'rejected' && call.reason.code)
  expect(codes).toEqual(Array(10).fill('TARGET_UNREACHABLE'))
  expect(performance.now() - since).toBeLessThan(2_500)
  other.exec('rollback')
  await target.createUser(userOf('user0'), [], requestFor(target))
})

test('reads of a locked SQLite file do not hold up other work', async () => {
  const url = `sqlite:${temporaryFolder()}/app.db`
  await makeApplication(url)
  await runOn(url, 'pragma journal_mode = delete')
  const target = await openTarget(url, { ...applicationParams, timeoutMillis: '300' })
  onTestFinished(async () => target.close?.())
  const other = new DatabaseSync(url.slice('sqlite:'.length))
  onTestFinished(() => other.close())
  other.exec('begin exclusive')
  const delays = monitorEventLoopDelay({ resolution: 5 })
  delays.enable()
  const request = requestFor(target)
  const reads = Array.from({ length: 50 }, async () => target.findUser('ada', [], request))
  const codes = (await Promise.allSettled(reads)).map((read) => read.status === 'rejected' && read.reason.code)
  delays.disable()
  expect(new Set(codes)).toEqual(new Set(['TARGET_UNREACHABLE']))
  expect(delays.max / 1e6).toBeLessThan(5_000)
})
