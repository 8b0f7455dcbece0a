import { describe, expect, inject, onTestFinished, test } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { Target } from '#sdk/target/target.ts'
import { onEachEmptyDatabase } from '#testing/databases/databases.ts'
import { openTarget, runOn } from '#testing/databases/sql-schema.ts'
import { newBranch, openLdap } from '#testing/ldap/ldap-target.ts'
import { sharedSlapd } from '#testing/ldap/slapd.ts'
import { openGatewayOn } from '#testing/scim/gateway-on-target.ts'
import { builtInParams } from '#testing/scim/scim-stack.ts'

/** Attributes of several values, in LDAP or in one table, and of a single value; addresses by parts. */
const params = {
  ...builtInParams,
  // The target does not have otherMail.
  'list.emails': 'work=mail,home=homeMail,other=otherMail',
  'list.phoneNumbers': 'work=telephoneNumber,mobile=mobile',
  'list.addresses': 'work=office,=office',
}

const systems: ((name: string, suite: (open: () => Promise<Target>) => void) => void)[] = [
  (name, suite) =>
    onEachEmptyDatabase(`${name}, in tables`, (freshUrl) =>
      suite(async () => {
        const url = await freshUrl()
        const key = url.startsWith('sqlite:') ? 'integer primary key autoincrement' : 'serial primary key'
        await runOn(
          url,
          `create table accounts (id ${key}, login text not null unique, phone text, mobile text, street text, city text, rev integer not null default 1)`,
          'create table addresses (account integer not null references accounts (id), address text not null, rank integer not null, kind varchar(10))',
        )
        return openTarget(url, {
          userTable: 'accounts',
          userName: 'login',
          userPrimaryKey: 'id',
          userVersion: 'rev',
          'column.userName': 'login',
          'values.mail': 'addresses(account, address, rank, kind=work)',
          'values.homeMail': 'addresses(account, address, rank, kind=home)',
          'column.telephoneNumber': 'phone',
          'column.mobile': 'mobile',
          'column.office.streetAddress': 'street',
          'column.office.locality': 'city',
          groupMode: 'None',
        })
      }),
    ),
  (name, suite) =>
    describe.skipIf(inject('slapd') === '')(`${name}, in OpenLDAP`, () =>
      suite(async () => {
        const slapd = await sharedSlapd()
        return openLdap(slapd, await newBranch(slapd), {
          objectClass: ['inetOrgPerson'],
          'default.cn': '${uid}',
          'default.sn': '${uid}',
          'attribute.userName': 'uid',
          'attribute.homeMail': 'description',
          'attribute.office.streetAddress': 'street',
          'attribute.office.locality': 'l',
        })
      }),
    ),
]

for (const onSystem of systems) {
  onSystem('a list in plain attributes', (openSystem) => {
    async function open() {
      const target = await openSystem()
      onTestFinished(async () => target.close?.())
      const { send } = await openGatewayOn(target, params)
      const created = async (body: JsonObject) => {
        const answer = await send('POST', '/Users', body)
        expect([answer.status, answer.body['detail']]).toEqual([201, undefined])
        const address = `/Users/${String(answer.body['id'])}`
        const patch = (...Operations: JsonValue[]) =>
          send('PATCH', address, { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations })
        return { address, body: answer.body, patch }
      }
      const found = async (filter: string): Promise<unknown[]> => {
        const { status, body } = await send('GET', `/Users?filter=${encodeURIComponent(filter)}`)
        expect([filter, status]).toEqual([filter, 200])
        return (body['Resources'] as JsonObject[]).map(({ userName }) => userName)
      }
      return { send, created, found }
    }
    const [work, second, home] = [
      { value: 'w@x.org', type: 'work', primary: true },
      { value: 's@x.org', type: 'work' },
      { value: 'h@x.org', type: 'home' },
    ] as const

    test('is stored, changed element by element, and removed for good', async () => {
      const { send, created } = await open()
      const phoneNumbers = [
        { value: '1', type: 'work', primary: true },
        { value: '2', type: 'mobile' },
      ]
      const addresses = [{ streetAddress: '1 Main St', locality: 'Oslo', type: 'work', primary: true }]
      const sent = { emails: [work, second, home], phoneNumbers, addresses }
      const { body, patch, address } = await created({ userName: 'ann', ...sent })
      expect(body).toMatchObject(sent)
      const replaced = await patch({ op: 'replace', path: 'emails[type eq "home"].value', value: 'n@x.org' })
      expect(replaced.body['emails']).toEqual([work, second, { ...home, value: 'n@x.org' }])
      const fewer = await patch({ op: 'remove', path: 'emails[value eq "w@x.org"]' })
      expect(fewer.body['emails']).toEqual([
        { ...second, primary: true },
        { ...home, value: 'n@x.org' },
      ])
      const { body: put } = await send('PUT', address, { userName: 'ann', emails: [home] })
      expect([put['emails'], put['phoneNumbers']]).toEqual([[{ ...home, primary: true }], undefined])
      expect((await patch({ op: 'remove', path: 'emails' })).body).not.toHaveProperty('emails')
    })

    test('is the same in any order, without the primary mark and without a type that it has anyway', async () => {
      const { send, created } = await open()
      const shown = [{ streetAddress: '1 Main St', locality: 'Oslo', type: 'work', primary: true }]
      for (const sent of [
        { streetAddress: '1 Main St', locality: 'Oslo', type: 'work' },
        { type: 'work', locality: 'Oslo', streetAddress: '1 Main St' },
        { streetAddress: '1 Main St', locality: 'Oslo' },
      ]) {
        const { address, patch } = await created({ userName: 'ann', addresses: [sent], active: true })
        const put = await send('PUT', address, { userName: 'ann', active: true, addresses: [sent] })
        expect([put.status, put.body['detail'], put.body['addresses']]).toEqual([200, undefined, shown])
        const other = [{ value: '1', type: 'mobile' }]
        const patched = await patch(
          { op: 'replace', path: 'addresses', value: [sent] },
          { op: 'replace', path: 'phoneNumbers', value: other },
        )
        expect([patched.status, patched.body['detail'], patched.body['addresses']]).toEqual([200, undefined, shown])
        expect((await send('DELETE', address)).status).toBe(204)
      }
    })

    test('is found by filters and by no other value', async () => {
      const { created, found } = await open()
      await created({ userName: 'ann', emails: [work, second], addresses: [{ locality: 'Oslo', type: 'work' }] })
      await created({ userName: 'bob', emails: [{ value: 'W@x.org', type: 'home' }] })
      await created({ userName: 'cat', phoneNumbers: [{ value: '12', type: 'mobile' }] })
      expect((await found('emails.value eq "w@x.org"')).sort()).toEqual(['ann', 'bob'])
      expect(await found('emails[type eq "work"].value eq "w@x.org"')).toEqual(['ann'])
      expect(await found('emails[type eq "home" and value eq "w@x.org"]')).toEqual(['bob'])
      expect(await found('emails[value eq "s@x.org"]')).toEqual(['ann'])
      expect(await found('emails.value co "s@"')).toEqual(['ann'])
      expect((await found('emails pr')).sort()).toEqual(['ann', 'bob'])
      expect(await found('not (emails pr)')).toEqual(['cat'])
      expect(await found('phoneNumbers[type eq "mobile"].value sw "1"')).toEqual(['cat'])
      expect(await found('addresses[type eq "work"].locality eq "oslo"')).toEqual(['ann'])
      expect(await found('emails.value ne "w@x.org"')).toContain('cat')
      expect(await found('not (emails.value eq "w@x.org")')).toEqual(['cat'])
      expect((await found('emails.type eq "home"')).sort()).toEqual(['bob'])
      expect(await found('emails[type eq "work"]')).toEqual(['ann'])
      expect(await found('emails[type eq "other"]')).toEqual([])
    })

    test('another value of a type becomes primary, or the answer says that it did not', async () => {
      const { created } = await open()
      const { patch } = await created({ userName: 'ann', emails: [work, second] })
      const { status, body } = await patch({ op: 'replace', path: 'emails[value eq "s@x.org"].primary', value: true })
      if (status === 200)
        expect(body['emails']).toEqual([
          { ...second, primary: true },
          { value: 'w@x.org', type: 'work' },
        ])
      else expect([status, body['detail']]).toEqual([500, expect.stringContaining('the order of values')])
    })
  })
}

onEachEmptyDatabase('a column', (freshUrl) => {
  test('holds one value, and the error names the list', async () => {
    const url = await freshUrl()
    await runOn(url, 'create table accounts (login text not null unique, email varchar(20))')
    const target = await openTarget(url, {
      userTable: 'accounts',
      userName: 'login',
      'column.userName': 'login',
      'column.mail': 'email',
      groupMode: 'None',
    })
    onTestFinished(async () => target.close?.())
    const { send } = await openGatewayOn(target, { ...builtInParams, 'list.emails': 'work=mail,home=homeMail' })
    const emails = ['a@x.org', 'b@x.org'].map((value) => ({ value, type: 'work' }))
    const two = await send('POST', '/Users', { userName: 'ann', emails })
    expect([two.status, two.body['scimType'], two.body['detail']]).toEqual([
      400,
      'invalidValue',
      'emails[type eq "work"] can have one value only.',
    ])
    const home = await send('POST', '/Users', { userName: 'ann', emails: [{ value: 'a@x.org', type: 'home' }] })
    expect([home.status, home.body['detail']]).toEqual([
      400,
      'emails[0]: the type "home" cannot be stored. Types that can be: "work".',
    ])
  })
})
