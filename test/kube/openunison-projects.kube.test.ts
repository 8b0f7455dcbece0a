import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EmbeddedDatabase, startPostgres } from '#testing/databases/embedded-postgres.ts'
import { runOn } from '#testing/databases/sql-schema.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser, type Visit } from '#testing/gateway/plain-browser.ts'
import { defineAll } from '#testing/kubernetes/custom-resources.ts'
import { expectDocumented } from '#testing/kubernetes/driven-charts.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import {
  addPeople,
  directoryObjects,
  org,
  password,
  SignedIn,
  soon,
  valueObjects,
  writeConfig,
  writeSecret,
} from '#testing/kubernetes/openunison-portal.ts'
import { projectSets } from '#testing/kubernetes/project-sets.ts'
import { addEntry, asAdmin } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'

const rewrite = (file: string, change: (text: string) => string): void =>
  writeFileSync(file, change(readFileSync(file, 'utf8')))

type Model = keyof typeof projectSets
/** In the tables of the charts. */
const accounts = {
  params: { target: 'jitdb', people: 'ou=users', groups: 'ou=groups', groupsAttribute: 'groups' },
  mapping: { givenName: 'firstName', sn: 'lastName' },
}
const chartsOf = (model: Model) => ['portal', 'login-active-directory', 'projects', ...projectSets[model]]

const requested = 'requested, approved, created with its RoleBindings'
const accessBy = {
  internal: ['access requested, approved and ended'],
  external: ["access follows the directory's group"],
  hybrid: ['access requested, approved and ended', "or follows the directory's group"],
} as const

/** As the charts create them, with their first rows. */
const tables = (schema: string): string[] => [
  `create schema ${schema}`,
  `create table ${schema}.localUsers (userId serial primary key, firstName varchar(255) not null,
    lastName varchar(255) not null, mail varchar(255) not null, sub varchar(255) not null unique)`,
  `create table ${schema}.localGroups (groupId serial primary key, description varchar(255), name varchar(255) not null unique)`,
  `create table ${schema}.userGroups (groupId int references ${schema}.localGroups, userId int references ${schema}.localUsers)`,
  `insert into ${schema}.localGroups (name) values ('administrators-internal'), ('administrators-external'), ('System'), ('users')`,
  `insert into ${schema}.localUsers (mail, sub, firstName, lastName) values ('', 'system', 'system', 'system')`,
  `insert into ${schema}.userGroups values (3, 1)`,
]

onKubernetes('projects in the form of OpenUnison’s charts', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openunison-projects-'))
  const gateways: GatewayProcess[] = []
  let postgres: EmbeddedDatabase
  let slapd: Slapd

  /** Groups of the directory as logins have them. */
  const shown = (group: string): string => `cn=${group},ou=groups,ou=activedirectory,o=Data`

  beforeAll(async () => {
    await defineAll(cluster)
    ;[postgres, slapd] = await Promise.all([startPostgres(), startSlapd()])
    await addPeople(slapd, { grace: ['platform'], ada: ['team'], bob: [] })
  })
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop()
    await slapd?.stop()
    await postgres?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** A gateway on the objects as they are, with a database of its own. */
  async function start(model: Model, change = (text: string): string => text): Promise<GatewayProcess> {
    const name = `${model}_${gateways.length}`
    const config = join(folder, name)
    await runOn(postgres.url, ...tables(name))
    const values = {
      K8S_OPENUNISON_NS: await cluster.namespace(),
      ACME_GROUPS: model,
      ACME_JDBC: `jdbc:${postgres.url}?options=-c%20search_path=${name}`,
      ACME_ADMINISTRATORS: shown('platform'),
    }
    writeConfig(config, chartsOf(model), [...valueObjects(cluster, values), ...directoryObjects(slapd, accounts)])
    // The charts have a value for it.
    rewrite(join(config, 'login-active-directory.yaml'), (text) =>
      text.replace('workflowName: jit ', 'workflowName: jitdb '),
    )
    for (const set of projectSets[model]) rewrite(join(config, `${set}.yaml`), change)
    writeSecret(config, 'orchestra-secrets-source', 'AD_BIND_PASSWORD', slapd.adminPassword)
    const gateway = await startGatewayProcess({ config, dataFolder: join(folder, `${name}-data`) })
    gateways.push(gateway)
    return gateway
  }

  const groupsOf = async (login: string, gateway: GatewayProcess): Promise<string[]> =>
    (await (await SignedIn.as(login, gateway)).groups()).sort()

  /** Requests a workflow of the list, as the page does. */
  async function request(user: SignedIn, label: string): Promise<void> {
    const { body } = await user.call('GET', `/scale/main/workflows/org/${org}`)
    const row = (body as Record<string, string>[]).find((one) => one['label'] === label)
    const { uuid = '', name, encryptedParams } = row ?? {}
    const asked = [{ uuid, name, encryptedParams, reason: 'For work' }]
    expect(await user.call('PUT', '/scale/main/workflows', asked)).toEqual({ status: 200, body: { [uuid]: 'success' } })
  }

  const models: readonly Model[] = ['internal', 'external', 'hybrid']

  test.each(models)(
    '%s groups: a namespace is requested, approved and used, and access ends',
    {
      timeout: 900_000,
    },
    async (model) => {
      const [isInternal, isExternal] = [model !== 'external', model !== 'internal']
      const gateway = await start(model)
      expect(gateway.output()).not.toMatch(/jitdb.*set aside|set aside.*jitdb/)
      const nameSpace = `project-${randomUUID().slice(0, 13)}`
      const administrators = (kind: string): string => `project-administrators-k8s-${nameSpace}-${kind}`
      const viewers = `project-viewers-k8s-${nameSpace}-internal`

      const grace = await SignedIn.as('grace', gateway)
      const administrator = isExternal ? 'administrators-external' : 'administrators-internal'
      expect((await grace.groups()).sort()).toEqual([administrator, 'users'])
      const ada = await SignedIn.as('ada', gateway)
      expect(await ada.groups()).toEqual(['users'])
      const drivenLogin = await ada.driven()

      const attributes = { cluster: 'k8s', nameSpace, ...(isExternal ? { adminGroup: shown('team') } : {}) }
      const submitted = await ada.call('POST', '/newproject/register/submit', { reason: 'For work', attributes })
      expect(submitted).toMatchObject({ status: 200 })
      expect(await ada.call('GET', '/scale/main/approvals')).toMatchObject({ body: { approvals: [] } })
      await grace.approve('new-project')

      const bindings = `/apis/rbac.authorization.k8s.io/v1/namespaces/${nameSpace}/rolebindings`
      const bindingOf = async (name: string, group: string, role: string): Promise<void> => {
        await until(async () => (await cluster.call('GET', `${bindings}/${name}`)).status === 200, soon)
        expect(await cluster.must('GET', `${bindings}/${name}`)).toMatchObject({
          subjects: [{ kind: 'Group', name: group }],
          roleRef: { kind: 'ClusterRole', name: role },
        })
      }
      if (isInternal) await bindingOf('administrators-internal', administrators('internal'), 'admin')
      if (isExternal) await bindingOf('administrators-external', administrators('external'), 'admin')
      const expected = [
        ...(isInternal ? [`approvers-k8s-${nameSpace}`, administrators('internal')] : []),
        ...(isExternal ? [administrators('external')] : []),
        'users',
      ].sort()
      await expect.poll(() => groupsOf('ada', gateway), { timeout: soon, interval: 500 }).toEqual(expected)

      const bob = await SignedIn.as('bob', gateway)
      expect(await bob.groups()).toEqual(['users'])
      if (isInternal) {
        await request(bob, `View ${nameSpace}`)
        await (await SignedIn.as('ada', gateway)).approve('view-project')
        await bindingOf('viewers-internal', viewers, 'view')
        await expect.poll(() => groupsOf('bob', gateway), { timeout: soon, interval: 500 }).toEqual([viewers, 'users'])

        await request(grace, 'End all access to k8s')
        await expect.poll(() => groupsOf('bob', gateway), { timeout: soon, interval: 500 }).toEqual(['users'])
        const left = expected.filter((group) => !group.startsWith('project-') || group.endsWith('-external'))
        await expect.poll(() => groupsOf('ada', gateway), { timeout: soon, interval: 500 }).toEqual(left)
      }
      if (isExternal) {
        // One member has to stay in a group.
        await asAdmin(slapd, (client) => client.del(`cn=team,${slapd.groupsDn}`))
        expect(await groupsOf('ada', gateway)).not.toContain(administrators('external'))
        const dn = `uid=ada,${slapd.peopleDn}`
        await addEntry(slapd, `cn=team,${slapd.groupsDn}`, { objectClass: ['groupOfNames'], member: [dn] })
        expect(await groupsOf('ada', gateway)).toContain(administrators('external'))
      }
      expectDocumented(
        `Namespaces as a service, ${model} groups, Active Directory`,
        chartsOf(model),
        { ...drivenLogin, namespaces: [requested, ...accessBy[model]].join('; ') },
        { ACME_GROUPS: model, ACME_ADMINISTRATORS: 'cn=a,dc=acme,dc=test', ACME_JDBC: 'jdbc:postgresql://db/people' },
      )
    },
  )

  const logIn = (login: string, gateway: GatewayProcess): Promise<Visit> =>
    new PlainBrowser(gateway.url).logIn('/scale/main/user', login, password)

  test('while the database is down, a login fails with a message, and the rest is served; afterwards it works again', {
    timeout: 600_000,
  }, async () => {
    const gateway = await start('internal')
    const grace = await SignedIn.as('grace', gateway)
    await postgres.halt()
    expect(await logIn('ada', gateway)).toMatchObject({
      status: 503,
      body: expect.stringContaining('A downstream system did not answer.'),
    })
    await expect.poll(() => gateway.output()).toMatch(/target \\"jitdb\\": /)
    expect(await grace.call('GET', '/scale/main/orgs')).toMatchObject({ status: 200 })
    expect((await fetch(`${gateway.url}/auth/idp/k8sidp/.well-known/openid-configuration`)).status).toBe(200)
    await postgres.restart()
    await expect.poll(() => groupsOf('ada', gateway), { timeout: soon, interval: 500 }).toEqual(['users'])
  })

  test('a script that loops or changes the database fails the login of that user only', {
    timeout: 600_000,
  }, async () => {
    const read = 'executeQuery("SELECT COUNT(*) AS num FROM localUsers")'
    const faulty = `executeQuery(user.getUserID() == "ada" ? "delete from localUsers returning 1 as num" : "SELECT COUNT(*) AS num FROM localUsers")`
    const gateway = await start('internal', (text) =>
      text
        .replace('javaScript: |-', "timeoutSeconds: '20'\n          javaScript: |-")
        .replace(read, faulty)
        .replace('rs.next();', 'rs.next(); while (user.getUserID() == "bob") {}'),
    )
    expect(await groupsOf('grace', gateway)).toEqual(['administrators-internal', 'users'])
    const [bob, again] = await Promise.all([logIn('bob', gateway), logIn('grace', gateway)])
    const refused = { status: 302, location: 'https://127.0.0.1/auth/forms/failed' }
    expect([bob, again]).toMatchObject([refused, { status: 303, location: '/scale/main/user' }])
    expect(await logIn('ada', gateway)).toMatchObject(refused)
    for (const reason of [/doTask took longer than 20000 ms/, /ProvisioningException: target \\"jitdb\\"/]) {
      await expect.poll(() => gateway.output()).toMatch(reason)
    }
    expect(await groupsOf('grace', gateway)).toEqual(['administrators-internal', 'users'])
  })
})
