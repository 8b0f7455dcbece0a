import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'ldapts'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import type { ApprovalDetails, ApprovalList } from '#features/portal/contract/main-requests.ts'
import { passwordModifyOid, passwordModifyValue } from '#protocols/ldap/ldap-server.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { runOn } from '#testing/databases/sql-schema.ts'
import { gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { addEntry, asAdmin } from '#testing/ldap/ldap-target.ts'
import { startSlapd } from '#testing/ldap/slapd.ts'
import { type MailServer, mailServer } from '#testing/servers/mail-server.ts'
import { addPerson } from '#testing/stories/add-person.ts'
import { registrationKeys } from '#testing/stories/registration-story.ts'
import { application, peopleInDatabase, registrationUrl, tokenMechanism } from '#testing/stories/story-documents.ts'

/** Where accounts are stored, beside the approver, who is in the embedded database. */
interface Accounts {
  readonly target: string
  readonly yaml: string
  /** For the gateway's own database. */
  readonly database?: string
  /** The password of the real newhire, beside the attributes from SCIM; the gateway does not know it. */
  givePassword(story: { readonly config: string; readonly dataFolder: string }): Promise<void>
  /** Everything stored about the account: attributes, groups, password. */
  snapshot(story: { readonly dataFolder: string }): Promise<unknown>
}

const realPassword = 'the real one’s own'
const attackersPassword = 'Attacker-chose-this-1!'

function inOwnDatabase(database?: string): Accounts {
  const args = database === undefined ? [] : ['--database', database]
  return {
    target: 'people',
    yaml: '',
    ...(database === undefined ? {} : { database }),
    givePassword: async ({ config, dataFolder }) => {
      const line = ['user', 'passwd', 'NewHire', '--config', config, '--data', dataFolder, ...args]
      const child = spawn(gatehouse, line, { env: { ...process.env, ...registrationKeys } })
      child.stdin.end(`${realPassword}\n`)
      expect(await once(child, 'close')).toEqual([0, null])
    },
    snapshot: async ({ dataFolder }) => {
      const url = database ?? `sqlite:${join(dataFolder, 'gatehouse.db')}`
      const tables = ['entries', 'attributes', 'memberships']
      const rows = await Promise.all(tables.map((table) => runOn(url, `select * from ${table}`)))
      return rows.map((all) => all.map((row) => JSON.stringify(row)).sort())
    },
  }
}

async function inOpenLdap(): Promise<Accounts> {
  const slapd = await startSlapd()
  onTestFinished(() => slapd.stop())
  for (const group of ['sales', 'visitors']) {
    const member = [`cn=nobody,${slapd.groupsDn}`]
    await addEntry(slapd, `cn=${group},${slapd.groupsDn}`, { objectClass: ['groupOfNames'], member })
  }
  const dn = `uid=newhire,${slapd.peopleDn}`
  return {
    target: 'accounts',
    yaml: target('targets.Ldap', {
      url: slapd.url,
      adminDN: slapd.adminDn,
      adminPasswd: slapd.adminPassword,
      searchBase: slapd.peopleDn,
      objectClass: 'inetOrgPerson',
      userIDAttribute: 'uid',
      dnPattern: `uid=\${uid},${slapd.peopleDn}`,
      'default.cn': '${uid}',
      'default.sn': '${uid}',
      versionAttribute: 'entryCSN',
      groupSearchBase: slapd.groupsDn,
      groupObjectClass: 'groupOfNames',
    }),
    givePassword: async () => {
      await asAdmin(slapd, (client) => client.exop(passwordModifyOid, passwordModifyValue(dn, realPassword)))
    },
    snapshot: () =>
      asAdmin(slapd, async (client) => {
        const own = await client.search(slapd.peopleDn, { filter: '(uid=newhire)', attributes: ['*', 'entryCSN'] })
        const groups = await client.search(slapd.groupsDn, { filter: `(member=${dn})`, attributes: ['cn'] })
        const user = new Client({ url: slapd.url })
        const binds = await user.bind(dn, realPassword).then(
          () => true,
          () => false,
        )
        await user.unbind()
        return { own: own.searchEntries, groups: groups.searchEntries, binds }
      }),
  }
}

async function inSqlTables(): Promise<Accounts> {
  const url = `sqlite:${join(temporaryFolder(), 'crm.db')}`
  await runOn(
    url,
    'pragma journal_mode = wal',
    `create table accounts (account_id integer primary key, login text not null, mail text, password_hash text,
      revision integer not null default 1)`,
    'create unique index accounts_login on accounts (lower(login))',
    'create table teams (team_id integer primary key, title text not null unique, revision integer not null default 1)',
    'create table team_accounts (team_id integer not null, account_id integer not null, primary key (team_id, account_id))',
    `insert into teams (title) values ('sales'), ('visitors')`,
  )
  return {
    target: 'accounts',
    yaml: target('targets.Sql', {
      url,
      userTable: 'accounts',
      userName: 'login',
      userPrimaryKey: 'account_id',
      userVersion: 'revision',
      'column.uid': 'login',
      'column.mail': 'mail',
      passwordField: 'password_hash',
      groupTable: 'teams',
      groupName: 'title',
      groupPrimaryKey: 'team_id',
      groupVersion: 'revision',
      groupLinkTableName: 'team_accounts',
      groupUserKey: 'account_id',
      groupGroupKey: 'team_id',
    }),
    givePassword: async () => {
      await runOn(url, `update accounts set password_hash = 'the real hash' where lower(login) = 'newhire'`)
    },
    snapshot: async () => [
      await runOn(url, 'select * from accounts order by 1'),
      await runOn(url, 'select * from team_accounts order by 1, 2'),
    ],
  }
}

const target = (className: string, params: Readonly<Record<string, string>>): string => `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: accounts }
spec: ${JSON.stringify({ className, params })}
---
apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: accounts }
spec: { className: directory.Target, suffix: "ou=accounts,o=Tremolo", params: { target: accounts } }
---`

/** A form whose registrations a manager approves, SCIM into the same target, and the API of approvals. */
const configuration = ({ target: name, yaml }: Accounts, mailPort: number): string => `${yaml}
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: mail }
spec:
  className: notifiers.Smtp
  params:
    - { name: host, value: 127.0.0.1 }
    - { name: port, value: "${mailPort}" }
    - { name: security, value: none }
    - { name: from, value: Gatehouse <gatehouse@example.com> }
---
${peopleInDatabase}
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: join }
spec:
  tasks:
    - taskType: approval
      label: Join \${uid}
      emailTemplate: Someone asks to join.
      mailAttr: mail
      failureEmailSubject: Denied
      failureEmailMsg: Sorry.
      approvers: [{ scope: filter, constraint: (uid=boss) }]
      onSuccess:
        - { taskType: addGroup, name: visitors }
        - { taskType: provision, target: ${name}, sync: true, setPassword: true, attributes: [uid, mail] }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: hire }
spec:
  tasks:
    - { taskType: addGroup, name: sales }
    - { taskType: provision, target: ${name}, sync: true, attributes: [uid, mail] }
---
${tokenMechanism}
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: api }
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: jwt
      required: required
      params:
        issuer: "#[GATEHOUSE_URL]/dev-issuer"
        audience: gatehouse
        fromWellKnown: "true"
        linkToDirectory: "true"
        lookupFilter: (uid=\${sub})
        noMatchOU: api
        uidAttr: sub
---
${application('development-issuer', [
  {
    hosts: ['*'],
    uri: '/dev-issuer',
    azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
    filterChain: [{ className: 'filters.DevelopmentIssuer', params: { issuer: '#[GATEHOUSE_URL]/dev-issuer' } }],
  },
])}
---
${application('form', [
  registrationUrl('/register', {
    workflowName: 'join',
    preSetPassword: 'true',
    'uid.unique': 'true',
    'mail.unique': 'true',
    submitsPerMinute: '0',
    submitsPerValuePerHour: '0',
  }),
])}
---
${application('scim', [
  {
    hosts: ['*'],
    uri: '/scim',
    authChain: 'api',
    azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
    filterChain: [
      {
        className: 'filters.ScimGateway',
        params: {
          lookupTarget: name,
          uidAttributeName: 'uid',
          idAttributeName: 'id',
          lookupAttributeName: 'uid',
          workflowName: 'hire',
          deleteUserWorkflowName: 'hire',
          scim2tremolo: ['uid', 'mail'],
          'scim2tremolo.uid.source': 'userName',
          'scim2tremolo.uid.sourceType': 'user',
          'scim2tremolo.mail.source': 'mappers.JsonPathMapping|emails,$[*].value',
          'scim2tremolo.mail.sourceType': 'custom',
          tremolo2scim: ['userName', 'emails'],
          'tremolo2scim.userName.source': 'uid',
          'tremolo2scim.userName.sourceType': 'user',
          'tremolo2scim.emails.source': '[{"type": "work", "primary": true, "value": "${mail}"}]',
          'tremolo2scim.emails.sourceType': 'composite',
        },
      },
    ],
  },
])}
---
${application('main', [
  {
    hosts: ['*'],
    uri: '/main',
    authChain: 'api',
    azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
    filterChain: [
      {
        className: 'filters.Main',
        params: {
          displayNameAttribute: 'uid',
          canEditUser: 'false',
          showPortalOrgs: 'false',
          warnMinutesLeft: '5',
          workflowName: 'hire',
          'frontPage.title': 'Welcome',
          'frontPage.text': 'Hello',
          uidAttributeName: 'uid',
          logoutURL: '/logout',
          attributeNames: ['uid', 'mail'],
          'uid.displayName': 'Login',
          'uid.readOnly': 'true',
          'mail.displayName': 'Mail',
          approvalAttributeNames: ['mail'],
          'approvals.mail': 'Mail',
        },
      },
    ],
  },
])}
`

type Story = Awaited<ReturnType<typeof startStory>>

async function startStory(accounts: Accounts) {
  const mails = await mailServer()
  onTestFinished(() => mails.close())
  const [config, dataFolder] = [temporaryFolder(), temporaryFolder()]
  writeFileSync(join(config, 'story.yaml'), configuration(accounts, mails.port))
  // The default for commands, which do not know the gateway's address; the gateway uses its own.
  writeFileSync(join(config, 'values.yaml'), 'GATEHOUSE_URL: http://127.0.0.1:8080\n')
  const args = accounts.database === undefined ? [] : ['--database', accounts.database]
  await addPerson(config, dataFolder, 'boss', 'the password of the boss', [
    '--attribute',
    'mail=boss@example.com',
    ...args,
  ])
  const start = async (data: string) => {
    const gateway = await startGatewayProcess({ config, dataFolder: data, args, environment: registrationKeys })
    onTestFinished(async () => void (await gateway.stop()))
    const tokens = { boss: await gateway.token('--subject', 'boss'), idp: await gateway.token('--subject', 'idp') }
    return async (method: string, path: string, body?: unknown, as?: keyof typeof tokens) =>
      await fetch(`${gateway.url}${path}`, {
        method,
        headers: {
          'content-type': path.startsWith('/scim') ? 'application/scim+json' : 'application/json',
          ...(as === undefined ? {} : { authorization: `Bearer ${tokens[as]}` }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
  }
  const send = await start(dataFolder)
  const register = async (uid: string, mail: string): Promise<string> => {
    const passwords = { password: attackersPassword, password2: attackersPassword }
    const answer = await send('POST', '/register/submit', { attributes: { uid, mail }, ...passwords })
    const text = await answer.text()
    expect(`${answer.status} ${text}`).toMatch(/^200 /)
    return (JSON.parse(text) as { workflowId: string }).workflowId
  }
  /** The approval, once the registration waits for the boss. */
  const approvalOf = async (run: string): Promise<string> => {
    let found: string | undefined
    await until(async () => {
      const list = (await (await send('GET', '/main/approvals', undefined, 'boss')).json()) as ApprovalList
      found = list.approvals.find(({ workflow }) => workflow === run)?.approval
      return found !== undefined
    }, 60_000)
    return found ?? ''
  }
  const hire = async (userName: string, mail: string): Promise<void> => {
    const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']
    const answer = await send('POST', '/scim/Users', { schemas, userName, emails: [{ value: mail }] }, 'idp')
    expect(`${answer.status} ${await answer.text()}`).toMatch(/^201 /)
  }
  const url = accounts.database ?? `sqlite:${join(dataFolder, 'gatehouse.db')}`
  const runOf = async (id: string) => (await runOn(url, `select * from runs where id = '${id}'`))[0] ?? {}
  const ended = async (id: string) => {
    await until(async () => (await runOf(id))['ended'] !== null, 60_000)
    return await runOf(id)
  }
  const startAnother = () => start(temporaryFolder())
  return { config, dataFolder, url, mails, send, startAnother, register, approvalOf, hire, ended }
}

async function hijack(story: Story, accounts: Accounts): Promise<void> {
  const run = await story.register('newhire', 'attacker@evil.example')
  const approval = await story.approvalOf(run)
  await story.hire('NewHire', 'newhire@example.com')
  await accounts.givePassword(story)
  const before = await accounts.snapshot(story)

  const shown = (await (
    await story.send('GET', `/main/approvals/${approval}`, undefined, 'boss')
  ).json()) as ApprovalDetails
  expect(shown.userObj).toMatchObject({ isNew: true, attribs: { mail: { values: ['attacker@evil.example'] } } })
  expect(shown.existing).toEqual({ checked: true, login: true, attributes: [] })

  const vote = { approved: true, reason: 'welcome' }
  const decided = await story.send('PUT', `/main/approvals/${approval}`, vote, 'boss')
  const reason = 'An account named "newhire" exists already; the registration created no account.'
  expect(`${decided.status} ${await decided.text()}`).toMatch(/^409 /)

  const ended = await story.ended(run)
  expect(ended).toMatchObject({ state: 'failed', secret: null })
  expect(JSON.parse(String(ended['incident']))).toMatchObject({ code: 'ACCOUNT_EXISTS', message: reason })
  expect(await accounts.snapshot(story)).toEqual(before)
  const tables = ['runs', 'approvals', 'steps', 'mails', 'audit', 'pending_registrations']
  const rows = await Promise.all(tables.map((table) => runOn(story.url, `select * from ${table}`)))
  expect(JSON.stringify(rows)).not.toContain(attackersPassword)
  await until(async () => mailsTo(story.mails, 'attacker@evil.example').length === 1, 60_000)
  const audit = await runOn(story.url, 'select * from audit')
  expect(JSON.stringify(audit.filter((row) => JSON.stringify(row).includes('ACCOUNT_EXISTS')))).toContain('newhire')

  // A new user gets an account, and everything that the workflow grants.
  const other = await story.register('other', 'other@example.com')
  const answer = await story.send('PUT', `/main/approvals/${await story.approvalOf(other)}`, vote, 'boss')
  expect(`${answer.status} ${await answer.text()}`).toMatch(/^200/)
  expect(await story.ended(other)).toMatchObject({ state: 'completed' })
}

/** The boss approves a registration while SCIM, here or at another gateway, creates the same login. */
async function race(story: Story, other: Story['send'] | undefined): Promise<void> {
  const submit = (uid: string, mail: string) => {
    const passwords = { password: attackersPassword, password2: attackersPassword }
    return story.send('POST', '/register/submit', { attributes: { uid, mail }, ...passwords })
  }
  const statuses = async (answers: readonly Promise<Response>[]) =>
    (await Promise.all(answers)).map(({ status }) => status).filter((status) => status === 200)
  const many = Array.from({ length: 12 }, (_, i) => i)
  const spelling = (login: string, i: number) => (i % 2 === 0 ? login : login.toUpperCase())
  expect(await statuses(many.map((i) => submit(spelling('crowd', i), `crowd${i}@evil.example`)))).toEqual([200])
  expect(await statuses(many.map((i) => submit(`crowd${i}`, spelling('one@evil.example', i))))).toEqual([200])

  for (const [round, millis] of [0, 5, 10, 20, 40, 80, 0, 20].entries()) {
    const login = `race${round}`
    const run = await story.register(login, `${login}@evil.example`)
    const approval = await story.approvalOf(run)
    const vote = { approved: true, reason: 'welcome' }
    const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']
    const user = { schemas, userName: login, emails: [{ value: `${login}@example.com` }] }
    const [decided, hired] = await Promise.all([
      story.send('PUT', `/main/approvals/${approval}`, vote, 'boss'),
      // Reaches another point of the run in every round.
      delay(millis).then(() => (other ?? story.send)('POST', '/scim/Users', user, 'idp')),
    ])
    const { state, incident } = await story.ended(run)
    const filter = encodeURIComponent(`userName eq "${login}"`)
    const list = await (await story.send('GET', `/scim/Users?filter=${filter}`, undefined, 'idp')).text()
    const mails = [...list.matchAll(/"([^"@]+@[^"]+)"/g)].map(([, mail]) => mail)
    if (hired.status === 201) {
      expect([state, String(incident), mails]).toEqual([
        'failed',
        expect.stringContaining('ACCOUNT_EXISTS'),
        [`${login}@example.com`],
      ])
    } else {
      expect([hired.status, decided.status, state, mails]).toEqual([409, 200, 'completed', [`${login}@evil.example`]])
    }
  }
}

const mailsTo = (mails: MailServer, recipient: string) => mails.mails.filter(({ to }) => to.includes(recipient))

/** Both in one gateway. The accounts are opened by the test that closes them. */
const changesNothing = async (open: () => Accounts | Promise<Accounts>, gateways: 1 | 2 = 1): Promise<void> => {
  const accounts = await open()
  const story = await startStory(accounts)
  await hijack(story, accounts)
  await race(story, gateways === 1 ? undefined : await story.startAnother())
}

describe('a registration changes no account that appears before the approval, and creates none that SCIM creates meanwhile', () => {
  test('in the embedded database', { timeout: 240_000 }, () => changesNothing(inOwnDatabase))

  test.skipIf(postgresUrl() === '')('in PostgreSQL, through two gateways', { timeout: 240_000 }, () =>
    changesNothing(async () => inOwnDatabase(await freshSchema()), 2),
  )

  test.skipIf(inject('slapd') === '')('in OpenLDAP', { timeout: 240_000 }, () => changesNothing(inOpenLdap))

  test('in the tables of an application', { timeout: 240_000 }, () => changesNothing(inSqlTables))
})
