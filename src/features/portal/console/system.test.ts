import { expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { SystemReport } from '#server/system-report.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { openMain, someone } from '#testing/modules/main-fixture.ts'

const admin = someone('root', ['people', 'admins'])
const params = { administrators: 'filter;(groups=admins)' }
const now = new Date(Date.UTC(2030, 0, 1))

async function report(dataFolder = temporaryFolder()) {
  const storage = openStorage({ dataFolder, clock: () => now, log: silentLogger })
  await storage.ready()
  return {
    storage,
    system: await SystemReport.start({ replica: 'here', storage, dataFolder, clock: () => now, log: silentLogger }),
  }
}

test('administrators see version, listeners, waiting work, database and disk', async () => {
  const { system, storage } = await report()
  const validTo = new Date(Date.UTC(2031, 0, 1))
  const certificate = { subject: 'CN=a', issuer: 'CN=ca', names: ['a.example.com'], validFrom: now, validTo }
  system.showListeners(() => [{ name: 'public', address: 'https://127.0.0.1:1', certificate }])
  const { send } = await openMain({ params, readSystem: () => system.describe() })
  await expect(send('GET', '/admin/system')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  const { body } = await send('GET', '/admin/system', undefined, admin)
  expect(body).toMatchObject({
    replica: { name: 'here', version: expect.stringMatching(/^\d+\.\d+\.\d+/), started: now.toISOString() },
    replicas: [{ name: body.replica.name }],
    node: process.version,
    queues: {
      runs: { ready: 0, running: 0, waiting: 0, incident: 0 },
      approvals: { open: 0 },
      mails: { queued: 0, failed: 0, unknown: 0 },
    },
    listeners: [{ name: 'public', certificate: { names: ['a.example.com'], validTo: validTo.toISOString() } }],
    database: { kind: 'sqlite', bytes: expect.any(Number) },
    disk: { freeBytes: expect.any(Number), totalBytes: expect.any(Number) },
  })
  await system.close()
  await storage.close()
})

test('what cannot be read is absent instead of zero', async () => {
  const { system, storage } = await report()
  await storage.close()
  const { send } = await openMain({ params, readSystem: () => system.describe() })
  const { body } = await send('GET', '/admin/system', undefined, admin)
  expect(body).not.toHaveProperty('queues')
  expect(body.database).toEqual({ kind: 'sqlite' })
  expect(body.replica).toBeDefined()
})

test('a process that serves nothing has no system', async () => {
  const { send } = await openMain({ params })
  await expect(send('GET', '/admin/system', undefined, admin)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
