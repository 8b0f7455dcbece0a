import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, inject, onTestFinished, test } from 'vitest'
import { targetSchema } from '#cli/init/target.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { expectWorking, secretFile } from '#testing/gateway/new-gateway.ts'
import { asAdmin } from '#testing/ldap/ldap-target.ts'
import { startSlapd } from '#testing/ldap/slapd.ts'
import { startScimServer } from '#testing/scim/scim-client.ts'
import { crmSecrets, startCrmApplication } from '#testing/targets/crm-application.ts'

test('a new gateway without a target stores users in its own database', async () => {
  await expectWorking([])
})

test('a new gateway for this machine only is used over http, without a certificate', async () => {
  await expectWorking(['--local'])
})

test.skipIf(postgresUrl() === '')('a new gateway runs on PostgreSQL', async () => {
  await expectWorking(['--database', await freshSchema()])
})

test('a new gateway creates users in the tables of an application', async () => {
  const file = join(temporaryFolder(), "crm's.db")
  const database = new DatabaseSync(file)
  onTestFinished(() => database.close())
  database.exec(targetSchema('sqlite'))
  await expectWorking(['--target', 'sql', '--target-url', `sqlite:${file}`])
  expect(database.prepare('select login, address from accounts join account_emails using (account_id)').all()).toEqual([
    { login: 'ada', address: 'ada@example.com' },
  ])
})

test.skipIf(inject('slapd') === '')('a new gateway creates users in an LDAP server', async () => {
  const slapd = await startSlapd()
  onTestFinished(() => slapd.stop())
  await expectWorking([
    ...['--target', 'ldap', '--target-url', slapd.url, '--target-base', slapd.baseDn],
    ...['--target-secret-file', secretFile(slapd.adminPassword)],
  ])
  const found = await asAdmin(slapd, (client) => client.search(slapd.peopleDn, { filter: '(uid=ada)' }))
  expect(found.searchEntries).toMatchObject([{ mail: 'ada@example.com' }])
})

test('a new gateway creates users in another SCIM server', async () => {
  const server = await startScimServer()
  onTestFinished(async () => void (await server.process.stop()))
  const other = server.client('/scim/v2')
  await expectWorking([
    ...['--target', 'scim', '--target-url', other.base, '--target-secret-file', secretFile(other.token)],
  ])
  expect((await other.filter('/Users', 'userName eq "ada"')).body).toMatchObject({ totalResults: 1 })
})

test('a new gateway creates users through the API of an application', async () => {
  const application = await startCrmApplication()
  onTestFinished(() => application.stop())
  const args = ['--target', 'webhook', '--target-url', application.url]
  const token = ['--target-secret-file', secretFile(crmSecrets.bearerToken)]
  await expectWorking([...args, ...token], (folder) => {
    // This application also requires a signature.
    writeFileSync(join(folder, 'config/secrets/accounts/signing'), crmSecrets.signingSecret)
    const file = join(folder, 'config/target.yaml')
    const signing = '    - name: signingSecret\n      secretName: accounts\n      secretKey: signing\n'
    writeFileSync(file, `${readFileSync(file, 'utf8')}${signing}`)
  })
})
