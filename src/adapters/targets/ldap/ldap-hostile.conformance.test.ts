import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { callMillis, trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'
import { asAdmin, newBranch, openLdap } from '#testing/ldap/ldap-target.ts'
import { type Slapd, sharedSlapd } from '#testing/ldap/slapd.ts'

describe.skipIf(inject('slapd') === '')('hostile values on OpenLDAP', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await sharedSlapd()
  })

  test('each passes through every lookup and write unchanged, and touches no other user', {
    timeout: trialMillis,
  }, async () => {
    const [branch, elsewhere] = [await newBranch(slapd), await newBranch(slapd)]
    const target = await openLdap(slapd, branch, { versionAttribute: 'entryCSN', timeoutMillis: String(callMillis) })
    onTestFinished(() => void target.close?.())
    const outside = async () => {
      const { searchEntries } = await asAdmin(slapd, (client) =>
        client.search(slapd.baseDn, { attributes: ['*', 'entryCSN'] }),
      )
      const others = searchEntries.filter(({ dn }) => !String(dn).endsWith(branch))
      return new Map(others.map((entry) => [String(entry.dn), entry]))
    }
    const before = await outside()
    expect([...before.keys()]).toContain(elsewhere)
    await hostileTrial('LDAP on OpenLDAP', target, { attributes: ['description', 'street'], width: 16 })
    expect(await outside()).toEqual(before)
  })
})
