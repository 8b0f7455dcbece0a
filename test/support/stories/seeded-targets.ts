import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Attribute, Change } from 'ldapts'
import { freshSchema, runSql } from '#testing/databases/postgres.ts'
import { addEntry, asAdmin } from '#testing/ldap/ldap-target.ts'
import { startSlapd } from '#testing/ldap/slapd.ts'
import { scimBehind } from '#testing/scim/scim-behind.ts'
import { coreUser } from '#testing/scim/scim-client.ts'
import { Line } from '#testing/servers/line.ts'
import { crmParams, crmSecrets, startCrmApplication } from '#testing/targets/crm-application.ts'

/** An account as every kind of system has it. */
export interface SeededAccount {
  readonly mail: string
  readonly title: string
  readonly active: boolean
  readonly groups: readonly string[]
}

/** A system behind a target, which a story reads and writes beside the gateway. */
export interface SeededTarget {
  readonly className: string
  readonly params: Readonly<Record<string, string | readonly string[]>>
  readonly secrets: Readonly<Record<string, string>>
  /** The attributes of accounts there. */
  readonly names: Readonly<Record<'mail' | 'title' | 'active', string>>
  /** Between the gateway and the system. */
  readonly line: Line
  /** Whether what a client sends begins a change. */
  isChange(sent: Buffer): boolean
  /** Its groups `group1` and `group2` exist. */
  add(login: string, account: SeededAccount): Promise<void>
  /** By login. */
  read(): Promise<Readonly<Record<string, SeededAccount>>>
  /** All that the system has of each account, with versions and times, by login. */
  stored(): Promise<Readonly<Record<string, string>>>
  /** How often each account was changed since it was created, by login. */
  changes(): Promise<Readonly<Record<string, number>>>
  close(): Promise<void>
}

export const seededGroups = ['group1', 'group2'] as const

const isHttpChange = (sent: Buffer): boolean => /^(?:POST|PUT|PATCH|DELETE) /.test(sent.toString('latin1', 0, 10))
const portOf = (url: string): number => Number(new URL(url).port)
const byLogin = <T>(entries: Iterable<readonly [string, T]>): Record<string, T> => Object.fromEntries(entries)

/** The CRM of examples/webhook-target, whose database the story opens. */
async function webhookTarget(folder: string): Promise<SeededTarget> {
  const file = join(folder, 'crm.db')
  const application = await startCrmApplication(file)
  const line = await Line.to(portOf(application.url))
  const database = new DatabaseSync(file)
  database.exec('pragma busy_timeout = 5000; pragma foreign_keys = on')
  const insert = (table: 'people' | 'teams', name: string, document: object): string => {
    const id = randomUUID()
    const statement = database.prepare(`insert into ${table} (id, key, version, document) values (?, ?, 1, ?)`)
    statement.run(id, JSON.stringify(name), JSON.stringify(document))
    return id
  }
  const teams = byLogin(seededGroups.map((name) => [name, insert('teams', name, { name, description: null })]))
  const rows = () => {
    const query = `select *, (select json_group_array(t.document) from members m join teams t on t.id = m.team
      where m.person = p.id order by t.rowid) as teams from people p`
    return database
      .prepare(query)
      .all()
      .map((row) => ({ row, person: JSON.parse(String(row['document'])), teams: JSON.parse(String(row['teams'])) }))
  }
  const { url: _, bearerToken: __, signingSecret: ___, ...params } = crmParams({})
  return {
    className: 'targets.Webhook',
    params: { ...params, url: line.url(application.url) },
    secrets: crmSecrets,
    names: { mail: 'mail', title: 'phone', active: 'active' },
    line,
    isChange: isHttpChange,
    add: async (login, { mail, title, active, groups }) => {
      const id = insert('people', login, { login, name: null, phone: title, active, emails: [mail] })
      database.prepare('insert into emails (person, key) values (?, ?)').run(id, JSON.stringify(mail))
      for (const group of groups) database.prepare('insert into members values (?, ?)').run(teams[group] ?? '', id)
    },
    read: async () =>
      byLogin(
        rows().map(({ person, teams }) => {
          const groups = teams.map((text: string) => JSON.parse(text).name).sort()
          return [person.login, { mail: person.emails.join(), title: person.phone, active: person.active, groups }]
        }),
      ),
    stored: async () => byLogin(rows().map(({ row, person }) => [person.login, JSON.stringify(row)])),
    changes: async () => byLogin(rows().map(({ row, person }) => [person.login, Number(row['version']) - 1])),
    close: async () => {
      database.close()
      line.close()
      await application.stop()
    },
  }
}

/** Tables in PostgreSQL. */
async function tableTarget(): Promise<SeededTarget> {
  const url = await freshSchema()
  const line = await Line.to(portOf(url))
  await runSql(
    url,
    `create table accounts (id bigint generated by default as identity primary key, login text not null unique,
       mail text, title text, active boolean not null default true, rev integer not null default 1);
     create table teams (id bigint generated by default as identity primary key, name text not null unique, rev integer not null default 1);
     create table members (account bigint not null references accounts, team bigint not null references teams,
       primary key (account, team));
     insert into teams (name) values ('group1'), ('group2')`,
  )
  const rows = () =>
    runSql(
      url,
      `select *, a.ctid::text as place, array(select name from members m join teams t on t.id = team
         where account = a.id order by name) as groups from accounts a`,
    )
  return {
    className: 'targets.Sql',
    params: {
      userTable: 'accounts',
      userName: 'login',
      userPrimaryKey: 'id',
      userVersion: 'rev',
      'column.mail': 'mail',
      'column.title': 'title',
      'column.active': 'active',
      groupTable: 'teams',
      groupName: 'name',
      groupPrimaryKey: 'id',
      groupVersion: 'rev',
      groupLinkTableName: 'members',
      groupUserKey: 'account',
      groupGroupKey: 'team',
    },
    secrets: { url: line.url(url) },
    names: { mail: 'mail', title: 'title', active: 'active' },
    line,
    isChange: (sent) => /(?:update|insert into) (?:"\w+"\.)?"accounts"/.test(sent.toString('latin1')),
    add: async (login, { mail, title, active, groups }) => {
      const statement = `with made as (insert into accounts (login, mail, title, active)
        values ('${login}', '${mail}', '${title}', ${active}) returning id)
        insert into members select made.id, t.id from made, teams t where t.name = any ('{${groups}}')`
      await runSql(url, statement)
    },
    read: async () =>
      byLogin(
        (await rows()).map(({ login, mail, title, active, groups }) => {
          return [String(login), { mail, title, active, groups } as SeededAccount]
        }),
      ),
    stored: async () => byLogin((await rows()).map((row) => [String(row['login']), JSON.stringify(row)])),
    changes: async () => byLogin((await rows()).map(({ login, rev }) => [String(login), Number(rev) - 1])),
    close: async () => line.close(),
  }
}

const ldapChanges: readonly (number | undefined)[] = [0x66, 0x68, 0x6c]

/** The tag of the operation of a message, which is a sequence of an id and the operation. */
function ldapOperation(message: Buffer): number | undefined {
  const length = message[1] ?? 0
  const id = length < 0x80 ? 2 : 2 + (length & 0x7f)
  return message[id + 2 + (message[id + 1] ?? 0)]
}

/** OpenLDAP. */
async function ldapTarget(folder: string): Promise<SeededTarget> {
  const changes = join(folder, 'changes.ldif')
  const slapd = await startSlapd({ changes })
  const line = await Line.to(portOf(slapd.url))
  const { peopleDn, groupsDn } = slapd
  const dnOf = (login: string): string => `uid=${login},${peopleDn}`
  for (const cn of seededGroups) {
    await addEntry(slapd, `cn=${cn},${groupsDn}`, { objectClass: ['groupOfNames'], member: ['cn=nobody'] })
  }
  const search = (base: string, filter: string, attributes: string[]) =>
    asAdmin(slapd, async (client) => (await client.search(base, { filter, attributes })).searchEntries)
  const accounts = () => search(peopleDn, '(uid=*)', ['*', '+'])
  return {
    className: 'targets.Ldap',
    params: {
      url: line.url(slapd.url),
      adminDN: slapd.adminDn,
      searchBase: peopleDn,
      objectClass: 'inetOrgPerson',
      dnPattern: `uid=\${uid},${peopleDn}`,
      'default.cn': '${uid}',
      'default.sn': '${uid}',
      versionAttribute: 'entryCSN',
      groupSearchBase: groupsDn,
      groupObjectClass: 'groupOfNames',
      timeoutMillis: '3000',
    },
    secrets: { adminPasswd: slapd.adminPassword },
    names: { mail: 'mail', title: 'title', active: 'employeeType' },
    line,
    isChange: (sent) => ldapChanges.includes(ldapOperation(sent)),
    add: async (login, { mail, title, active, groups }) => {
      await addEntry(slapd, dnOf(login), {
        objectClass: ['inetOrgPerson'],
        cn: [login],
        sn: [login],
        mail: [mail],
        title: [title],
        employeeType: [String(active)],
      })
      const modification = new Attribute({ type: 'member', values: [dnOf(login)] })
      await asAdmin(slapd, async (client) => {
        for (const group of groups) {
          await client.modify(`cn=${group},${groupsDn}`, new Change({ operation: 'add', modification }))
        }
      })
    },
    read: async () => {
      const groups = await search(groupsDn, '(cn=*)', ['cn', 'member'])
      return byLogin(
        (await accounts()).map(({ dn, uid, mail, title, employeeType }) => {
          const joined = groups.filter(({ member }) => [member].flat().includes(dn)).map(({ cn }) => String(cn))
          const account = { mail: String(mail), title: String(title), active: employeeType !== 'false' }
          return [String(uid), { ...account, groups: joined.sort() }]
        }),
      )
    },
    stored: async () => byLogin((await accounts()).map((entry) => [String(entry['uid']), JSON.stringify(entry)])),
    changes: async () => {
      const counts = byLogin((await accounts()).map(({ uid }) => [String(uid), 0]))
      const text = existsSync(changes) ? readFileSync(changes, 'utf8') : ''
      for (const [, login = ''] of text.matchAll(/^dn: uid=([^,]+),.*\nchangetype: modify$/gm)) {
        counts[login] = (counts[login] ?? 0) + 1
      }
      return counts
    },
    close: async () => {
      line.close()
      await slapd.stop()
    },
  }
}

interface ScimUser {
  readonly userName: string
  readonly title: string
  readonly active?: boolean
  readonly emails: readonly { readonly value: string }[]
  readonly groups?: readonly { readonly display: string }[]
  readonly meta: { readonly version: string }
}

/** The SCIM API of a second gateway. */
async function scimTarget(): Promise<SeededTarget> {
  const { client } = await scimBehind()
  const line = await Line.to(portOf(client.base))
  const groupIds: Record<string, string> = {}
  for (const displayName of seededGroups)
    groupIds[displayName] = (await client.post('/Groups', { displayName })).body.id
  const users = async (): Promise<readonly ScimUser[]> => (await client.list('/Users', { count: '200' })).body.Resources
  return {
    className: 'targets.Scim',
    params: { url: line.url(client.base), timeoutMillis: '3000' },
    secrets: { token: client.token },
    names: { mail: 'emails.value', title: 'title', active: 'active' },
    line,
    isChange: isHttpChange,
    add: async (userName, { mail, title, active, groups }) => {
      const emails = [{ value: mail, type: 'work' }]
      const { body } = await client.post('/Users', { schemas: [coreUser], userName, title, active, emails })
      for (const group of groups) {
        await client.patch(`/Groups/${groupIds[group]}`, [{ op: 'add', path: 'members', value: [{ value: body.id }] }])
      }
    },
    read: async () =>
      byLogin(
        (await users()).map(({ userName, emails, title, active = true, groups = [] }) => {
          const mail = emails.map(({ value }) => value).join()
          return [userName, { mail, title, active, groups: groups.map(({ display }) => display).sort() }]
        }),
      ),
    stored: async () => byLogin((await users()).map((user) => [user.userName, JSON.stringify(user)])),
    changes: async () =>
      byLogin((await users()).map(({ userName, meta }) => [userName, Number(/\d+/.exec(meta.version)?.[0]) - 1])),
    close: async () => line.close(),
  }
}

/** By the name of the kind; `folder` is for files. */
export const seededTargets = {
  'an API': webhookTarget,
  'tables in PostgreSQL': tableTarget,
  OpenLDAP: ldapTarget,
  'a SCIM server': scimTarget,
} as const satisfies Readonly<Record<string, (folder: string) => Promise<SeededTarget>>>
