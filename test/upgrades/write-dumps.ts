import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import manifest from '../../package.json' with { type: 'json' }
import { dumpKey, dumpOf } from './dump.ts'

/** Writes the dumps of the current version: run it when a version is released, and never for an older one. */
const folder = join(import.meta.dirname, manifest.version)
mkdirSync(folder, { recursive: true })
const temporary = mkdtempSync(join(tmpdir(), 'gatehouse-dump-'))
const postgres = await startPostgres()
try {
  const urls = { sqlite: `sqlite:${join(temporary, 'gatehouse.db')}`, postgres: postgres.url }
  for (const [name, url] of Object.entries(urls)) {
    const gateway = await startGatewayProcess({
      config: 'examples/quickstart',
      dataFolder: join(temporary, name),
      args: ['--database', url],
      environment: dumpKey,
    })
    try {
      await fill(gateway)
    } finally {
      await gateway.stop()
    }
    writeFileSync(join(folder, `${name}.sql`), await dumpOf(url))
  }
} finally {
  await postgres.stop()
  rmSync(temporary, { recursive: true, force: true })
}

/** What users of the quickstart do on a day: a SCIM client, a profile, a request that is denied and one that is open. */
async function fill(gateway: GatewayProcess): Promise<void> {
  const token = await gateway.token('--subject', 'idp')
  const scim = async (path: string, body: unknown): Promise<void> => {
    const response = await fetch(`${gateway.url}/scim/people${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
      body: JSON.stringify(body),
    })
    if (response.status !== 201) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
  await scim('/Users', { userName: 'margaret', name: { givenName: "Margaret d'A", familyName: 'Hämilton' } })
  const [ada, alan, grace] = [
    await PortalPerson.logIn(gateway, 'ada'),
    await PortalPerson.logIn(gateway, 'alan'),
    await PortalPerson.logIn(gateway, 'grace'),
  ]
  const send = async (who: PortalPerson, path: string, body: unknown): Promise<void> => {
    const { status, text } = await who.send('PUT', path, body)
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
  }
  const opened = async (count: number) => {
    let approvals: { readonly approval: string; readonly user: string }[] = []
    await until(async () => {
      approvals = (await grace.get('/main/approvals')).json.approvals
      return approvals.length === count
    }, 60_000)
    return approvals
  }
  await send(ada, '/main/user', { displayName: { name: 'displayName', value: 'Ada King' } })
  await send(alan, '/main/workflows', [{ uuid: 'alan', name: 'vault-access', reason: 'curious' }])
  const [first] = await opened(1)
  await send(grace, `/main/approvals/${first?.approval}`, { approved: false, reason: 'not now' })
  await opened(0)
  await send(ada, '/main/workflows', [{ uuid: 'ada', name: 'vault-access', reason: 'on call' }])
  await opened(1)
}
