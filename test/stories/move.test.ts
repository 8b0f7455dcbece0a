import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connect, readAddress } from '#database/databases.ts'
import { silentLogger } from '#kernel/logger.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import { dumpKey } from '../upgrades/dump.ts'

const program = process.env['GATEHOUSE_PROGRAM'] ?? ''
const routes = [
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
] as const

describe.skipIf(postgresUrl() === '')('a gateway of before the first release', () => {
  test.each(routes)('moves from %s to %s, and its users continue to work', async (from, to) => {
    const [data, newData] = [temporaryFolder(), temporaryFolder()]
    const urls = { sqlite: (folder: string) => `sqlite:${join(folder, 'gatehouse.db')}`, postgres: freshSchema }
    const [url, newUrl] = [await urls[from](data), await urls[to](newData)]
    const { dialect, address } = readAddress(url)
    const client = await connect(dialect, address, silentLogger, undefined)
    const script = readFileSync(`test/upgrades/main-1319b973/${from}.sql`, 'utf8')
    await client.migrate((_, runScript) => runScript(script))
    await client.close()
    const run = async (...args: string[]): Promise<string> =>
      (await promisify(execFile)(program, args, { env: { ...process.env, ...dumpKey } })).stdout
    const file = join(data, 'gatehouse.jsonl')
    await run('export', file, '--leave-unfinished', '--data', data, '--database', url)
    await run('import', file, '--data', newData, '--database', newUrl)
    const gateway = await startGatewayProcess({
      config: 'examples/quickstart',
      program,
      dataFolder: newData,
      args: ['--database', newUrl],
      environment: dumpKey,
    })
    onTestFinished(async () => void (await gateway.stop()))
    const [ada, grace] = [await PortalPerson.logIn(gateway, 'ada'), await PortalPerson.logIn(gateway, 'grace')]
    expect((await ada.get('/main/user')).text).toContain('Ada King')
    const approvals = async () => (await grace.get('/main/approvals')).json.approvals
    expect(await approvals()).toEqual([])
    await ada.send('PUT', '/main/workflows', [{ uuid: 'ada', name: 'vault-access', reason: 'on call' }])
    await until(async () => (await approvals()).length === 1, 60_000)
    const [{ approval }] = await approvals()
    expect((await grace.send('PUT', `/main/approvals/${approval}`, { approved: true, reason: 'fine' })).status).toBe(
      200,
    )
    await until(async () => (await ada.get('/main/user')).json.groups.includes('vault'), 60_000)
    expect(await run('audit', 'verify', '--data', newData, '--database', newUrl)).toContain('all unchanged')
  })
})
