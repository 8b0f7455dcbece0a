import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { hasLookups } from '#sdk/target/target.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { asAdmin } from '#testing/ldap/ldap-target.ts'
import { startSlapd } from '#testing/ldap/slapd.ts'
import { coreUser, ScimClient, startScimServer } from '#testing/scim/scim-client.ts'
import { leavers } from '#testing/scim/scim-leavers.ts'
import { fresh } from '#testing/scim/scim-story.ts'
import { crmParams, openWebhook, startCrmApplication } from '#testing/targets/crm-application.ts'

/** The state of an account, read without the gateway that the provider calls. */
type Account = 'on' | 'off' | 'gone'

interface Running {
  readonly gateway: GatewayProcess
  account(login: string): Promise<Account>
  stop(): Promise<void>
}

interface Example {
  /** The folder in examples, and the path of the gateway in it. */
  readonly folder: string
  readonly path: string
  /** Claims beside the subject that the gateway requires. */
  readonly claims?: readonly string[]
  readonly isThere?: () => boolean
  start(folder: string): Promise<Running>
}

const ofUser = (body: { active?: boolean } | undefined): Account =>
  body === undefined ? 'gone' : body.active === false ? 'off' : 'on'

/** Reads through another gateway in front of the same target. */
const through = async (client: ScimClient, login: string): Promise<Account> => {
  const { body } = await client.filter('/Users', `userName eq "${login}"`)
  return ofUser(body.Resources?.[0])
}

async function startScim(): Promise<Running> {
  const { process, client } = await startScimServer()
  return {
    gateway: process,
    account: (login) => through(client('/scim/strict'), login),
    stop: async () => void (await process.stop()),
  }
}

/** The gateways on loopback; `init.test.ts` has those of the files that `scim init` writes. */
const scimPaths = ['/scim/v2', '/scim/entra', '/scim/okta', '/scim/sailpoint', '/scim/onelogin', '/tenants/acme/scim']

async function startSql(folder: string): Promise<Running> {
  const file = join(folder, 'crm.db')
  new DatabaseSync(file).exec(readFileSync('examples/sql-target/schema.sql', 'utf8'))
  const gateway = await startGatewayProcess({
    config: 'examples/sql-target',
    environment: { CRM_DATABASE: `sqlite:${file}` },
  })
  return {
    gateway,
    async account(login) {
      const database = new DatabaseSync(file)
      const row = database.prepare('select enabled from accounts where login = ?').get(login)
      database.close()
      if (row === undefined) return 'gone'
      return ['0', 'false'].includes(String(row['enabled']).toLowerCase()) ? 'off' : 'on'
    },
    stop: async () => void (await gateway.stop()),
  }
}

async function startLdap(): Promise<Running> {
  const slapd = await startSlapd({ adminPassword: 'example' })
  const environment = { LDAP_URL: slapd.url, LDAP_BASE: slapd.baseDn }
  const gateway = await startGatewayProcess({ config: 'examples/ldap-target', environment })
  return {
    gateway,
    async account(login) {
      const found = await asAdmin(slapd, (client) => client.search(slapd.baseDn, { filter: `(uid=${login})` }))
      // The example's convention for deactivated accounts.
      const [entry] = found.searchEntries
      return ofUser(entry && { active: String(entry['employeeType']).toLowerCase() !== 'false' })
    },
    async stop() {
      await gateway.stop()
      await slapd.stop()
    },
  }
}

async function startScimTarget(folder: string): Promise<Running> {
  const behind = await startScimServer()
  const config = join(folder, 'front')
  cpSync('examples/scim-target', config, { recursive: true })
  writeFileSync(join(config, 'secrets/downstream/token'), behind.token)
  const server = behind.client('/scim/v2')
  const gateway = await startGatewayProcess({ config, environment: { DOWNSTREAM_URL: server.base } })
  return {
    gateway,
    account: (login) => through(server, login),
    async stop() {
      await gateway.stop()
      await behind.process.stop()
    },
  }
}

async function startWebhook(folder: string): Promise<Running> {
  const application = await startCrmApplication(join(folder, 'webhook.db'))
  const gateway = await startGatewayProcess({
    config: 'examples/webhook-target',
    environment: application.environment,
  })
  const behind = await openWebhook(crmParams({ url: application.url }))
  if (!hasLookups(behind)) throw new Error('the example has no look-ups')
  return {
    gateway,
    async account(login) {
      const user = await behind.lookupUserByLogin(login)
      return ofUser(user && { active: user.attributes.first('active') !== 'false' })
    },
    async stop() {
      await behind.close?.()
      await gateway.stop()
      await application.stop()
    },
  }
}

async function startQuickstart(): Promise<Running> {
  const gateway = await startGatewayProcess({ config: 'examples/quickstart' })
  const people = new ScimClient(`${gateway.url}/scim/people`, await gateway.token('--subject', 'idp'))
  const crm = new ScimClient(`${gateway.url}/scim/crm`, await gateway.token('--subject', 'idp', '--claim', 'role=crm'))
  return {
    gateway,
    async account(login) {
      const [inPeople, inCrm] = [await through(people, login), await through(crm, login)]
      return inPeople === 'gone' ? inCrm : inPeople
    },
    stop: async () => void (await gateway.stop()),
  }
}

const examples: readonly Example[] = [
  ...scimPaths.map((path) => ({ folder: 'scim', path, start: startScim })),
  { folder: 'sql-target', path: '/scim/crm', start: startSql },
  { folder: 'ldap-target', path: '/scim/directory', start: startLdap, isThere: () => inject('slapd') !== '' },
  { folder: 'scim-target', path: '/scim/front', start: startScimTarget },
  { folder: 'webhook-target', path: '/scim/crm', start: startWebhook },
  { folder: 'quickstart', path: '/scim/people', start: startQuickstart },
  { folder: 'quickstart', path: '/scim/crm', claims: ['--claim', 'role=crm'], start: startQuickstart },
]
/** Examples of something else, whose gateways `push.test.ts` and `resource-types.test.ts` drive. */
const others = ['push', 'resource-types']
const providers = new Set(['entra', 'okta', 'sailpoint', 'onelogin'])

test('every example configuration with a SCIM gateway is here', () => {
  const found = globSync('examples/*/*.yaml').filter((file) =>
    /className: (filters\.ScimGateway|com\.tremolosecurity\.proxy\.filters\.scim\.Scim)\b/.test(
      readFileSync(file, 'utf8'),
    ),
  )
  const folders = new Set(found.map((file) => basename(dirname(file))))
  expect([...folders].sort()).toEqual([...new Set([...examples.map(({ folder }) => folder), ...others])].sort())
})

const folders = [...new Set(examples.map(({ folder }) => folder))]

describe.each(folders)('deprovisioning on examples/%s', (name) => {
  const gateways = examples.filter(({ folder }) => folder === name)
  const [first] = gateways
  if (first === undefined) throw new Error(`no gateway in ${name}`)

  describe.skipIf(first.isThere?.() === false)('succeeds, or the provider gets an error', () => {
    const temporary = mkdtempSync(join(tmpdir(), 'gatehouse-leavers-'))
    let running: Running
    beforeAll(async () => {
      running = await first.start(temporary)
    }, 120_000)
    afterAll(async () => {
      await running?.stop()
      rmSync(temporary, { recursive: true, force: true })
    })

    const cases = gateways.flatMap(({ path, claims = [] }) =>
      leavers.filter(({ client }) => providers.has(client)).map((leaver) => ({ ...leaver, path, claims })),
    )
    test.each(cases)('$path, $client: $way', async ({ path, claims, way, deprovision }) => {
      const { gateway, account } = running
      const client = new ScimClient(gateway.url + path, await tokenOf(gateway, claims))
      const userName = fresh('leaver')
      const { status, body } = await client.post('/Users', {
        schemas: [coreUser],
        userName,
        name: { givenName: 'Lea', familyName: 'Ver', formatted: 'Lea Ver' },
        displayName: 'Lea Ver',
        emails: [{ type: 'work', primary: true, value: `${userName}@example.com` }],
        active: true,
      })
      expect(status, JSON.stringify(body)).toBe(201)
      expect(await account(userName)).toBe('on')
      const answer = await deprovision(client, body.id)
      const after = await account(userName)
      if (answer.status < 300) expect({ way, after }).toEqual({ way, after: answer.status === 204 ? 'gone' : 'off' })
      else
        expect({ refused: answer.status >= 400 && answer.status < 500, after }).toEqual({ refused: true, after: 'on' })
    })

    if (name !== 'quickstart') return
    // Each way may store another form of the value, which the login must understand.
    test('a user whom a provider deactivated can no longer log in', async () => {
      const { gateway } = running
      const scim = new ScimClient(`${gateway.url}/scim/people`, await tokenOf(gateway, []))
      const [, password = ''] = /^ {2}ada +(\w+-\d{4})\b/m.exec(gateway.output()) ?? []
      const logIn = async () => (await new PlainBrowser(gateway.url).logIn('/main/user', 'ada', password)).status
      const { id } = (await scim.filter('/Users', 'userName eq "ada"')).body.Resources[0]
      expect(await logIn()).toBe(303)
      const ways = leavers.filter(({ client, way }) => ['entra', 'okta'].includes(client) && !/delete/i.test(way))
      expect(ways.length).toBe(4)
      for (const { client, way, deprovision } of ways) {
        expect((await deprovision(scim, id)).status).toBe(200)
        expect({ client, way, after: await logIn() }).toEqual({ client, way, after: 401 })
        const back = await scim.patch(`/Users/${id}`, [{ op: 'replace', path: 'active', value: true }])
        expect(back.status).toBe(200)
        expect({ client, way, again: await logIn() }).toEqual({ client, way, again: 303 })
      }
    })
  })
})

const tokens = new Map<string, Promise<string>>()

function tokenOf(gateway: GatewayProcess, claims: readonly string[]): Promise<string> {
  const key = [gateway.url, ...claims].join(' ')
  const known = tokens.get(key) ?? gateway.token('--subject', 'idp', ...claims)
  tokens.set(key, known)
  return known
}
