import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { LdapServer } from '#protocols/ldap/ldap-server.ts'
import { type Slapd, sharedSlapd } from '#testing/ldap/slapd.ts'

describe.skipIf(inject('slapd') === '')('passwords checked by a bind', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await sharedSlapd()
  })

  function open(password: string) {
    const server = new LdapServer({
      name: 'directory insert "people"',
      url: slapd.url,
      startTls: false,
      ca: undefined,
      timeoutMillis: 3000,
      credentials: { dn: slapd.adminDn, password },
      maxConnections: 4,
      idleMillis: 0,
      pageSize: 100,
      referrals: 'ignore',
    })
    onTestFinished(() => server.close())
    return server
  }

  test('are right or wrong, and an empty one is never right', async () => {
    const server = open(slapd.adminPassword)
    const checks = [slapd.adminPassword, 'wrong', ''].map((given) => server.checkPassword(slapd.adminDn, given))
    expect(await Promise.all(checks)).toEqual([true, false, false])
  })

  test('are not reported as wrong if our own is refused', async () => {
    const server = open('not ours')
    const filter = { kind: 'and', filters: [] } as const
    const search = server.find({ base: slapd.baseDn, scope: 'base', filter, attributes: ['1.1'] })
    await expect(search).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    expect(await server.checkPassword(slapd.adminDn, slapd.adminPassword)).toBe(true)
    expect(await server.checkPassword(slapd.adminDn, 'wrong')).toBe(false)
  })
})
