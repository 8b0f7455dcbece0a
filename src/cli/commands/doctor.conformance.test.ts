import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import type { Diagnosis } from '#cli/doctor/diagnosis.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { freshSchema, migratedSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { startSlapd } from '#testing/ldap/slapd.ts'

async function examine(config: string, ...args: readonly string[]) {
  const all = [
    'doctor',
    '--config',
    config,
    '--data',
    join(config, 'data'),
    '--output',
    'json',
    '--timeout',
    '20',
    ...args,
  ]
  const { code, stdout } = await runCommand(all)
  const found: Diagnosis[] = JSON.parse(stdout).findings
  return { code, stdout, of: (probe: string) => found.filter((one) => one.probe === probe) }
}

function configFolder(yaml: string, password?: string): string {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'all.yaml'), yaml)
  if (password === undefined) return folder
  mkdirSync(join(folder, 'secrets/directory'), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, 'secrets/directory/password'), password, { mode: 0o600 })
  return folder
}

const people = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database, params: [] }
`

test.skipIf(postgresUrl() === '')('PostgreSQL is asked for version, schema and time, and not migrated', async () => {
  const migrated = await examine(configFolder(people), '--database', await migratedSchema())
  expect(migrated.of('database')).toMatchObject([
    { seen: expect.stringMatching(/^PostgreSQL \d+.*, answered in \d+ ms$/) },
    { level: 'ok', seen: 'schema 0001_initial, the newest' },
    { level: 'ok', seen: expect.stringContaining('the clock agrees with that of the database') },
  ])
  const empty = await freshSchema()
  for (let time = 1; time <= 2; time++) {
    const { of } = await examine(configFolder(people), '--database', empty)
    expect(of('database')[1]).toMatchObject({
      level: 'ok',
      seen: 'it has no tables of Gatehouse yet: serve creates them',
    })
  }
})

test.skipIf(postgresUrl() === '')('a login that PostgreSQL refuses is a problem', async () => {
  const wrong = new URL(postgresUrl())
  wrong.username = 'stranger'
  wrong.password = 'hunter2'
  const { code, of, stdout } = await examine(configFolder(people), '--database', wrong.toString())
  expect([code, of('database')]).toMatchObject([
    1,
    [{ level: 'problem', advice: expect.stringContaining('user, password') }],
  ])
  expect(stdout).not.toContain('hunter2')
})

test.skipIf(inject('slapd') === '')(
  'an LDAP target is called with its password, and a wrong one is a problem',
  async () => {
    const slapd = await startSlapd()
    onTestFinished(() => slapd.stop())
    const yaml = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: directory }
spec:
  className: targets.Ldap
  params:
    url: ${slapd.url}
    adminDN: ${slapd.adminDn}
    searchBase: ${slapd.peopleDn}
    objectClass: inetOrgPerson
    dnPattern: uid=\${uid},${slapd.peopleDn}
  secretParams: [{ name: adminPasswd, secretName: directory, secretKey: password }]
`
    const right = await examine(configFolder(yaml, slapd.adminPassword))
    expect(right.of('target')).toMatchObject([{ level: 'ok', at: 'directory' }])
    const wrong = await examine(configFolder(yaml, 'hunter2-wrong'))
    expect([wrong.code, wrong.of('target')]).toMatchObject([1, [{ level: 'problem', at: 'directory' }]])
    expect(wrong.stdout).not.toContain('hunter2-wrong')
  },
)
