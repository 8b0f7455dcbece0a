import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, EqualityFilter } from 'ldapts'
import { type Slapd, slapdTool, startSlapd } from '#testing/ldap/slapd.ts'
import { drive, warm } from './drive.ts'
import { secondsOf, turnsOf } from './effort.ts'
import { startMeasured } from './gateway.ts'
import { runLoad } from './load.ts'
import { median } from './median.ts'
import { type Cost, medianCost } from './paired.ts'
import { type RequestMaker, scimRequests } from './requests.ts'
import { loginOf } from './seed.ts'

export interface LdapFigures {
  readonly entries: number
  readonly bare: number
  /** SCIM requests, and their rate as a share of bare searches beside them. */
  readonly rates: readonly (Cost & { readonly name: string; readonly share: number })[]
  /** Of one page of 100 of the whole directory. */
  readonly pageMillis: number
}

const path = '/scim/directory'
const connections = 16
const turns = turnsOf(5)
const turnSeconds = secondsOf(1)
const sample = 2000

/**
 * A directory with this many users in OpenLDAP behind a SCIM gateway, beside ldapts alone with the same searches.
 * Undefined without slapd.
 */
export async function measureLdap(folder: string, entries: number): Promise<LdapFigures | undefined> {
  if (!isSlapdInstalled()) return undefined
  const seedFile = join(folder, 'people.ldif')
  await writePeople(seedFile, entries)
  const slapd = await startSlapd({ seedFile, adminPassword: 'example', durable: true })
  try {
    const config = join(folder, 'ldap-config')
    await cp('examples/ldap-target', config, { recursive: true })
    await writeFile(join(config, 'values.yaml'), `LDAP_URL: ${slapd.url}\nLDAP_BASE: ${slapd.baseDn}\n`)
    const gateway = await startMeasured(config, join(folder, 'ldap-data'))
    try {
      const ids = await sampleIds(slapd, entries)
      const requests = scimRequests(gateway, path)
      const { port } = gateway
      const bareRates: number[] = []
      const turn = async (name: string, request: RequestMaker) => {
        const load = { connections, request, expectedStatus: 200, seconds: turnSeconds }
        await warm(gateway, { ...load, seconds: secondsOf(2) })
        await bareSearches(slapd, ids)
        const costs: Cost[] = []
        const shares: number[] = []
        for (let n = 0; n < turns; n++) {
          const bare = await bareSearches(slapd, ids)
          const cost = await drive(gateway, load)
          bareRates.push(bare)
          costs.push(cost)
          shares.push(cost.perSecond / bare)
        }
        return { name, ...medianCost(costs), share: median(shares) }
      }
      const rates = [
        await turn('GET by id', requests.byId(ids)),
        await turn('filter userName eq', requests.byLogin(entries)),
      ]
      const page = await runLoad({
        port,
        connections: 1,
        request: requests.page,
        expectedStatus: 200,
        seconds: secondsOf(5),
      })
      return { entries, rates, bare: median(bareRates), pageMillis: page.p50 }
    } finally {
      await gateway.stop()
    }
  } finally {
    await slapd.stop()
  }
}

function isSlapdInstalled(): boolean {
  try {
    slapdTool('slapd')
    return true
  } catch {
    return false
  }
}

/** Searches per second of ldapts by the same identifiers, one at a time on each of the connections. */
async function bareSearches({ url, adminDn, adminPassword, peopleDn }: Slapd, ids: readonly string[]): Promise<number> {
  const clients = Array.from({ length: connections }, () => new Client({ url }))
  await Promise.all(clients.map((client) => client.bind(adminDn, adminPassword)))
  let done = 0
  const started = performance.now()
  const end = started + turnSeconds * 1000
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() < end) {
        const value = ids[Math.floor(Math.random() * ids.length)] ?? ''
        await client.search(peopleDn, { filter: new EqualityFilter({ attribute: 'entryUUID', value }) })
        done++
      }
    }),
  )
  const seconds = (performance.now() - started) / 1000
  await Promise.all(clients.map((client) => client.unbind()))
  return done / seconds
}

async function sampleIds({ url, adminDn, adminPassword, peopleDn }: Slapd, entries: number): Promise<string[]> {
  const client = new Client({ url })
  await client.bind(adminDn, adminPassword)
  const ids: string[] = []
  for (let i = 0; i < sample; i++) {
    const value = loginOf(Math.floor((i * entries) / sample))
    const filter = new EqualityFilter({ attribute: 'uid', value })
    const { searchEntries } = await client.search(peopleDn, { filter, attributes: ['entryUUID'] })
    ids.push(String(searchEntries[0]?.['entryUUID']))
  }
  await client.unbind()
  return ids
}

async function writePeople(file: string, count: number): Promise<void> {
  const out = createWriteStream(file)
  for (let i = 0; i < count; i++) {
    const uid = loginOf(i)
    const lines = `uid: ${uid}\ncn: Person ${i}\nsn: Person\ngivenName: P${i}\nmail: ${uid}@example.com\n`
    const entry = `dn: uid=${uid},ou=people,dc=example,dc=test\nobjectClass: inetOrgPerson\n${lines}\n`
    if (!out.write(entry)) await once(out, 'drain')
  }
  out.end()
  await once(out, 'finish')
}
