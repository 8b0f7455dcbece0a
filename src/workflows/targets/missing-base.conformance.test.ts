import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { addEntry, newBranch, openLdap, quietRequest } from '#testing/ldap/ldap-target.ts'
import { sharedSlapd } from '#testing/ldap/slapd.ts'
import { checkTarget } from '#workflows/targets/target-health.ts'

describe.skipIf(inject('slapd') === '')('bases that an LDAP server does not have', () => {
  async function open() {
    const slapd = await sharedSlapd()
    const branch = await newBranch(slapd)
    const [people, groups] = [`ou=people,${branch}`, `ou=groups,${branch}`]
    const target = await openLdap(slapd, branch, {
      searchBase: people,
      groupSearchBase: groups,
      dnPattern: `uid=\${uid},${people}`,
    })
    onTestFinished(async () => target.close?.())
    const create = (name: string) => addEntry(slapd, `ou=${name},${branch}`, { objectClass: ['organizationalUnit'] })
    return { people, groups, target, create }
  }

  test('the check names the missing one', async () => {
    const { people, groups, target, create } = await open()
    const problem = (base: string, of: string) => ({
      health: 'down',
      problem: expect.stringContaining(`: ${base}, the base of ${of}, is missing. Create it`),
    })
    expect(await checkTarget(target, 30_000)).toMatchObject(problem(people, 'users'))
    await create('people')
    expect(await checkTarget(target, 30_000)).toMatchObject(problem(groups, 'groups'))
    await create('groups')
    expect(await checkTarget(target, 30_000)).toMatchObject({ health: 'up' })
  })

  test('a user that is created there is refused with the name of the parent, for the log', async () => {
    const { people, target } = await open()
    await expect(target.createUser(userOf('a,nn'), [], quietRequest)).rejects.toMatchObject({
      code: 'TARGET_FAILED',
      message: expect.stringMatching(
        new RegExp(`add: result 32 \\(noSuchObject\\): .*: the parent ${people} is missing$`),
      ),
    })
  })
})
