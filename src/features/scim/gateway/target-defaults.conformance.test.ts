import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { onEachEmptyDatabase } from '#testing/databases/databases.ts'
import { openTarget, runOn } from '#testing/databases/sql-schema.ts'
import { newBranch, openLdap } from '#testing/ldap/ldap-target.ts'
import { sharedSlapd } from '#testing/ldap/slapd.ts'
import { openGatewayOn } from '#testing/scim/gateway-on-target.ts'
import { ScimClient } from '#testing/scim/scim-client.ts'
import type { Send } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams } from '#testing/scim/scim-stack.ts'
import { openTargetOn } from '#testing/scim/scim-target-fixture.ts'

/** inetOrgPerson requires `cn` and `sn`, which clients may leave out. */
describe.skipIf(inject('slapd') === '')('required attributes of an LDAP server', () => {
  async function open() {
    const slapd = await sharedSlapd()
    const target = await openLdap(slapd, await newBranch(slapd), {
      objectClass: ['inetOrgPerson'],
      'default.cn': '${uid}',
      'default.sn': '${uid}',
      emptyTexts: 'leaveOut',
      'attribute.userName': 'uid',
      'attribute.title': 'title',
      'attribute.name.formatted': 'cn',
      'attribute.name.familyName': 'sn',
      'attribute.name.givenName': 'givenName',
      'attribute.active': 'employeeType',
      'attribute.emails': 'description',
    })
    onTestFinished(async () => target.close?.())
    return openGatewayOn(target, builtInParams)
  }
  const ann = { userName: 'ann', name: { givenName: 'Ann', familyName: 'Bee' }, active: true }

  test('PUT without them answers 200 with the defaults, and does the rest', async () => {
    const { send } = await open()
    const created = await send('POST', '/Users', ann)
    const address = `/Users/${String(created.body['id'])}`
    for (const sent of [
      { ...ann, active: false },
      { ...ann, active: true },
      { userName: 'ann', active: false },
      { userName: 'ann', active: true },
    ]) {
      const { status, body } = await send('PUT', address, sent)
      expect([status, body['detail'], body['active']]).toEqual([200, undefined, sent.active])
      expect(body['name']).toEqual({ familyName: 'ann', ...('name' in sent ? sent.name : {}), formatted: 'ann' })
    }
  })

  test('PATCH remove of a value that is the default already answers 200, and shows it', async () => {
    const { send } = await open()
    const { body: made } = await send('POST', '/Users', { userName: 'ann' })
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
    for (const path of ['name.familyName', 'name']) {
      const remove = { schemas, Operations: [{ op: 'remove', path }] }
      const { status, body } = await send('PATCH', `/Users/${String(made['id'])}`, remove)
      expect([status, (body['name'] as JsonObject)['familyName']]).toEqual([200, 'ann'])
    }
  })

  test('an empty text, which the server cannot store, is no value and no failure', async () => {
    const { send } = await open()
    const empty = { userName: 'ann', title: '', name: { givenName: '', familyName: '' }, active: true }
    const made = await send('POST', '/Users', empty)
    expect([made.status, made.body['name'], made.body['title']]).toEqual([
      201,
      { familyName: 'ann', formatted: 'ann' },
      undefined,
    ])
    const address = `/Users/${String(made.body['id'])}`
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
    const replace = { schemas, Operations: [{ op: 'replace', path: 'title', value: '' }] }
    for (const [method, sent] of [
      ['PUT', empty],
      ['PATCH', replace],
      ['PUT', { ...ann, title: 'Chief' }],
      ['PATCH', replace],
      ['PUT', empty],
    ] as const) {
      const { status, body } = await send(method, address, sent)
      const title = 'title' in sent && sent.title !== '' ? sent.title : undefined
      expect([status, body['detail'], body['title']]).toEqual([200, undefined, title])
    }
    expect((await send('GET', address)).body['name']).toEqual({ familyName: 'ann', formatted: 'ann' })
  })

  test('POST brings a deactivated user back', async () => {
    const { send } = await open()
    const { body } = await send('POST', '/Users', ann)
    await send('PUT', `/Users/${String(body['id'])}`, { ...ann, active: false })
    const back = await send('POST', '/Users', ann)
    expect([back.status, back.body['id'], back.body['active']]).toEqual([201, body['id'], true])
  })
})

onEachEmptyDatabase('defaults of columns', (freshUrl) => {
  async function open() {
    const url = await freshUrl()
    const key = url.startsWith('sqlite:') ? 'integer primary key autoincrement' : 'serial primary key'
    await runOn(
      url,
      `create table accounts (account_id ${key}, login varchar(200) not null unique, enabled boolean not null default true,
        display_name varchar(200), title varchar(200) not null default 'Staff', locale varchar(20) default 'en')`,
    )
    const target = await openTarget(url, {
      userTable: 'accounts',
      userName: 'login',
      userPrimaryKey: 'account_id',
      'column.userName': 'login',
      'column.active': 'enabled',
      'column.displayName': 'display_name',
      'column.title': 'title',
      'column.locale': 'locale',
    })
    onTestFinished(async () => target.close?.())
    return openGatewayOn(target, builtInParams)
  }

  test('POST without values answers 201 with the defaults', async () => {
    const { send } = await open()
    const { status, body } = await send('POST', '/Users', { userName: 'ann' })
    expect([status, body['title'], body['locale'], body['active']]).toEqual([201, 'Staff', 'en', true])
  })

  test('PUT and PATCH without a value that the column needs answer 200 with its default', async () => {
    const { send } = await open()
    const { body: made } = await send('POST', '/Users', { userName: 'ann' })
    const address = `/Users/${String(made['id'])}`
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
    const remove = { schemas, Operations: [{ op: 'remove', path: 'title' }] }
    for (const [method, sent] of [
      ['PUT', { userName: 'ann', active: true }],
      ['PATCH', remove],
      ['PUT', { userName: 'ann', active: true, displayName: 'Ann', title: 'Chief' }],
      ['PATCH', remove],
    ] as const) {
      const { status, body } = await send(method, address, sent)
      const title = 'title' in sent ? sent.title : 'Staff'
      expect([status, body['detail'], body['title']]).toEqual([200, undefined, title])
    }
  })

  test('a removed value stays removed if the column needs none, whatever its default', async () => {
    const { send } = await open()
    const { body: made } = await send('POST', '/Users', { userName: 'ann', title: 'Chief', locale: 'fr' })
    const address = `/Users/${String(made['id'])}`
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
    const removed = await send('PATCH', address, { schemas, Operations: [{ op: 'remove', path: 'locale' }] })
    expect([removed.status, removed.body['locale']]).toEqual([200, undefined])
    expect((await send('GET', address)).body).not.toHaveProperty('locale')
  })
})

/** Tables whose trigger fills in what a user or group lacks, which no column declares. */
const filled = (url: string): readonly string[] =>
  url.startsWith('sqlite:')
    ? ['accounts', 'teams'].flatMap((table) =>
        ['insert', 'update'].map(
          (event) => `create trigger ${table}_${event} after ${event} on ${table} when new.title is null
            begin update ${table} set title = 'Staff' where rowid = new.rowid; end`,
        ),
      )
    : [
        `create function fill_title() returns trigger language plpgsql as
          $$ begin if new.title is null then new.title := 'Staff'; end if; return new; end $$`,
        ...['accounts', 'teams'].map(
          (table) =>
            `create trigger fill before insert or update on ${table} for each row execute function fill_title()`,
        ),
      ]

async function openFilled(url: string) {
  const key = url.startsWith('sqlite:') ? 'integer primary key autoincrement' : 'serial primary key'
  await runOn(
    url,
    `create table accounts (account_id ${key}, login varchar(200) not null unique, enabled boolean not null default true,
      display_name varchar(200), title varchar(200))`,
    `create table teams (team_id ${key}, name varchar(200) not null unique, title varchar(200))`,
    'create table team_accounts (team_id integer not null, account_id integer not null, primary key (team_id, account_id))',
    ...filled(url),
  )
  const target = await openTarget(url, {
    userTable: 'accounts',
    userName: 'login',
    userPrimaryKey: 'account_id',
    'column.userName': 'login',
    'column.active': 'enabled',
    'column.displayName': 'display_name',
    'column.title': 'title',
    groupTable: 'teams',
    groupName: 'name',
    groupPrimaryKey: 'team_id',
    'groupColumn.externalId': 'title',
    groupLinkTableName: 'team_accounts',
    groupUserKey: 'account_id',
    groupGroupKey: 'team_id',
  })
  onTestFinished(async () => target.close?.())
  return openGatewayOn(target, { ...builtInParams, groupUpdateWorkflow: 'update-group' })
}

const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
const removeOf = (path: string) => ({ schemas, Operations: [{ op: 'remove', path }] })

/** Whatever fills in the title, each answer shows what is stored. */
async function removesTitle(send: Send): Promise<void> {
  const made = await send('POST', '/Users', { userName: 'ann' })
  expect([made.status, made.body['title']]).toEqual([201, 'Staff'])
  const address = `/Users/${String(made.body['id'])}`
  for (const [method, sent] of [
    ['PUT', { userName: 'ann', active: true }],
    ['PATCH', removeOf('title')],
    ['PUT', { userName: 'ann', active: true, displayName: 'Ann', title: 'Chief' }],
    ['PATCH', removeOf('title')],
    ['PUT', { userName: 'ann', active: false }],
    ['PUT', { userName: 'ann', active: true }],
  ] as const) {
    const { status, body } = await send(method, address, sent)
    const title = 'title' in sent ? sent.title : 'Staff'
    expect([status, body['detail'], body['title']]).toEqual([200, undefined, title])
    expect((await send('GET', address)).body['title']).toBe(title)
  }
}

onEachEmptyDatabase('a trigger that fills a column', (freshUrl) => {
  test('answers 200 to PUT and PATCH without its value, and shows it', async () => {
    const { send } = await openFilled(await freshUrl())
    await removesTitle(send)
  })

  test('answers 200 to PUT and PATCH of a group without its value, and shows it', async () => {
    const url = await freshUrl()
    const { send } = await openFilled(url)
    await runOn(url, "insert into teams (name) values ('red')")
    const { body: list } = await send('GET', '/Groups')
    const [{ id } = {}] = list['Resources'] as JsonObject[]
    const address = `/Groups/${String(id)}?attributes=externalId`
    for (const [method, sent] of [
      ['PUT', { displayName: 'red' }],
      ['PATCH', removeOf('externalId')],
      ['PUT', { displayName: 'red', externalId: 'Chief' }],
      ['PATCH', removeOf('externalId')],
    ] as const) {
      const { status, body } = await send(method, address, sent)
      const shown = 'externalId' in sent ? sent.externalId : 'Staff'
      expect([status, body['detail'], body['externalId']]).toEqual([200, undefined, shown])
      expect((await send('GET', address)).body['externalId']).toBe(shown)
    }
  })

  test('does not make a value that it overwrites look stored', async () => {
    const url = await freshUrl()
    const { send } = await openFilled(url)
    await runOn(
      url,
      ...(url.startsWith('sqlite:')
        ? [
            `create trigger fixed after update of display_name on accounts when new.display_name <> 'Ann'
              begin update accounts set display_name = 'Ann' where rowid = new.rowid; end`,
          ]
        : [
            `create function fix_name() returns trigger language plpgsql as
              $$ begin new.display_name := 'Ann'; return new; end $$`,
            'create trigger fixed before update on accounts for each row execute function fix_name()',
          ]),
    )
    const { body: made } = await send('POST', '/Users', { userName: 'ann', displayName: 'Ann' })
    const Operations = [{ op: 'replace', path: 'displayName', value: 'Bob' }]
    const { status, body } = await send('PATCH', `/Users/${String(made['id'])}`, { schemas, Operations })
    expect([status, body['detail']]).toEqual([500, expect.stringMatching(/"displayName" did not change/)])
  })
})

onEachEmptyDatabase('a SCIM service that supplies a default', (freshUrl) => {
  test('answers 200 to PUT and PATCH without its value, and shows it', async () => {
    const { send: behind } = await openFilled(await freshUrl())
    const service = createServer(async (request, response) => {
      const path = (request.url ?? '').replace('/service', '')
      const sent = await text(request)
      const { 'if-match': version } = request.headers
      const headers = version === undefined ? {} : { 'if-match': version }
      const answer = await behind(request.method ?? 'GET', path, sent === '' ? undefined : sent, headers)
      response.writeHead(answer.status, { ...answer.headers, 'content-type': 'application/scim+json' })
      response.end(answer.status === 204 ? undefined : JSON.stringify(answer.body))
    })
    await once(service.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void service.close())
    const { port } = service.address() as AddressInfo
    const base = `http://127.0.0.1:${port}/service`
    const target = await openTargetOn({ client: new ScimClient(base, 'token'), empty: async () => {} })
    onTestFinished(async () => target.close?.())
    await removesTitle((await openGatewayOn(target, builtInParams)).send)
  })
})
