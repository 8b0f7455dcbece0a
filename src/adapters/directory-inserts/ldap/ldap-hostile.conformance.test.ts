import { beforeAll, describe, inject, onTestFinished, test } from 'vitest'
import { Dn } from '#identity/dn.ts'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { callMillis, trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileInsertTrial } from '#testing/hostile/hostile-insert-trial.ts'
import { newBranch, openLdap, quietRequest as request } from '#testing/ldap/ldap-target.ts'
import { type Slapd, sharedSlapd } from '#testing/ldap/slapd.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import ldap from './ldap.ts'

const suffix = Dn.parse('ou=staff,o=Tremolo')

describe.skipIf(inject('slapd') === '')('the LDAP insert and hostile values', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await sharedSlapd()
  })

  test('each passes through every lookup unchanged, and finds no other user', { timeout: trialMillis }, async () => {
    const searchBase = await newBranch(slapd)
    const timeoutMillis = String(callMillis)
    const behind = await openLdap(slapd, searchBase, { groupObjectClass: ['groupOfNames'], timeoutMillis })
    const { url, adminDn: adminDN, adminPassword: adminPasswd } = slapd
    const params = fakeParams({ url, adminDN, adminPasswd, searchBase, timeoutMillis }, ['adminPasswd'])
    const insert = await ldap
      .prepare(params, noIssues(), fakeParseContext())
      .create({ ...fakeModuleHost(), name: 'staff', suffix })
    onTestFinished(async () => {
      await insert.close?.()
      await behind.close?.()
    })
    await hostileInsertTrial('LDAP on OpenLDAP', {
      insert,
      suffix,
      person: (login) => suffix.child('uid', login),
      group: (name) => suffix.child('cn', name),
      attribute: 'description',
      addGroup: (name) => behind.createGroup(name, {}, request),
      removeGroup: (name) => behind.deleteGroup(name, request),
      addPerson: (login, description, group) =>
        behind.createUser(userOf(login, { description }, [group]), ['description'], request),
      removePerson: (login) => behind.deleteUser(userOf(login), request),
      setPassword: (login, password) => behind.setUserPassword(userOf(login), password, request),
    })
  })
})
