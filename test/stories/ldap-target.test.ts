import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { asAdmin } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'
import { coreGroup, coreUser, ScimClient } from '#testing/scim/scim-client.ts'

describe.skipIf(inject('slapd') === '')('an LDAP directory behind a SCIM gateway', () => {
  let slapd: Slapd
  let gateway: GatewayProcess
  let scim: ScimClient
  beforeAll(async () => {
    slapd = await startSlapd({ adminPassword: 'example' })
    gateway = await startGatewayProcess({
      config: 'examples/ldap-target',
      environment: { LDAP_URL: slapd.url, LDAP_BASE: slapd.baseDn },
    })
    scim = new ScimClient(`${gateway.url}/scim/directory`, await gateway.token('--subject', 'idp'))
  })
  afterAll(async () => {
    await gateway?.stop()
    await slapd?.stop()
  })

  const entry = async (filter: string) => {
    const found = await asAdmin(slapd, (client) => client.search(slapd.baseDn, { filter }))
    return found.searchEntries[0]
  }
  const create = async (userName: string, more: object = {}) => {
    const answer = await scim.post('/Users', { schemas: [coreUser], userName, ...more })
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    return answer
  }

  test('users are created, changed and deleted', async () => {
    const { body } = await create('grace', {
      name: { givenName: 'Grace', familyName: 'Hopper', formatted: 'Grace Hopper' },
      emails: [{ value: 'grace@example.com' }],
    })
    expect(await entry('(uid=grace)')).toMatchObject({
      dn: `uid=grace,${slapd.peopleDn}`,
      cn: 'Grace Hopper',
      sn: 'Hopper',
      mail: 'grace@example.com',
    })
    const patched = await scim.patch(`/Users/${body.id}`, [{ op: 'replace', path: 'name.familyName', value: 'Murray' }])
    expect(patched.status).toBe(200)
    expect((await entry('(uid=grace)'))?.['sn']).toBe('Murray')
    const found = await scim.filter('/Users', 'emails.value eq "GRACE@example.com"')
    expect(found.body).toMatchObject({ totalResults: 1, Resources: [{ userName: 'grace', id: body.id }] })
    expect((await scim.post('/Users', { schemas: [coreUser], userName: 'grace' })).status).toBe(409)
    const renamed = await scim.patch(`/Users/${body.id}`, [{ op: 'replace', path: 'userName', value: 'grace,h' }])
    expect(renamed.status, JSON.stringify(renamed.body)).toBe(200)
    expect((await entry('(sn=Murray)'))?.dn).toMatch(/^uid=grace\\(,|2C)h,ou=people/)
    expect((await scim.delete(`/Users/${body.id}`)).status).toBe(204)
    expect(await entry('(sn=Murray)')).toBeUndefined()
  })

  test('e-mails that the mapping hides survive changes of the shown one', async () => {
    const { body } = await create('many', { emails: [{ value: 'a@example.com' }, { value: 'b@example.com' }] })
    const mails = async () => [(await entry('(uid=many)'))?.['mail'] ?? []].flat().map(String).sort()
    expect(await mails()).toEqual(['a@example.com', 'b@example.com'])
    const added = await scim.patch(`/Users/${body.id}`, [
      { op: 'add', path: 'emails', value: [{ type: 'home', value: 'c@example.com' }] },
    ])
    expect(added.status, JSON.stringify(added.body)).toBe(200)
    expect(await mails()).toEqual(['a@example.com', 'b@example.com', 'c@example.com'])
  })

  test('the directory itself rejects a change that expects an older version', async () => {
    const { body } = await create('versioned')
    const { headers } = await scim.get(`/Users/${body.id}`)
    const tag = headers.get('etag') ?? ''
    expect(tag).not.toBe('')
    const change = (value: string) =>
      scim.patch(`/Users/${body.id}`, [{ op: 'replace', path: 'displayName', value }], { 'if-match': tag })
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map(change))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412])
  })

  test('groups: created, joined by many at once, left, renamed', async () => {
    const group = await scim.post('/Groups', { schemas: [coreGroup], displayName: 'crew' })
    expect(group.status, JSON.stringify(group.body)).toBe(201)
    const ids: string[] = []
    for (let i = 0; i < 6; i++) ids.push((await create(`member${i}`)).body.id)
    const joined = await Promise.all(
      ids.map((value) => scim.patch(`/Groups/${group.body.id}`, [{ op: 'add', path: 'members', value: [{ value }] }])),
    )
    expect(joined.map(({ status }) => status)).toEqual(ids.map(() => expect.toSatisfy((s: number) => s < 300)))
    expect(await scim.members(group.body.id)).toEqual([...ids].sort())
    const [first = ''] = ids
    await scim.patch(`/Groups/${group.body.id}`, [{ op: 'remove', path: `members[value eq "${first}"]` }])
    await scim.patch(`/Groups/${group.body.id}`, [{ op: 'replace', path: 'displayName', value: 'team' }])
    expect(await scim.members(group.body.id)).toEqual(ids.slice(1).sort())
    expect((await entry('(cn=team)'))?.['member']).toContain(`uid=member1,${slapd.peopleDn}`)
    expect((await scim.get(`/Users/${ids[1]}`)).body.groups).toMatchObject([{ display: 'team' }])
  })

  test('the directory goes down and comes back: 503 with Retry-After meanwhile, and no restart of the gateway', async () => {
    const { body } = await create('patient')
    await slapd.kill()
    const down = await scim.get(`/Users/${body.id}`)
    expect(down.status).toBe(503)
    expect(Number(down.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(JSON.stringify(down.body)).not.toContain('127.0.0.1')
    await slapd.restart()
    await until(async () => (await scim.get(`/Users/${body.id}`)).status === 200, 8000)
    expect(gateway.output()).not.toContain('"example"')
  })
})
