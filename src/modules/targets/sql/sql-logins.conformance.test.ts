import { expect, test } from 'vitest'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasLookups, type Target } from '#sdk/target.ts'
import { onEachDatabase } from '#testing/databases.ts'
import { makeApplication, openApplication, openTarget, runOn } from '#testing/sql-schema.ts'

const names = { attributes: ['mail', 'givenName', 'phone'], groups: ['group1', 'group2', 'group3'] } as const
const requestFor = (target: Target) => targetFixture(target, names).request

onEachDatabase('logins of the SQL target', (freshUrl) => {
  test('nobody is made whose login is another’s in other letters, which the rest of Gatehouse takes for the same', async () => {
    const target = await openApplication(await freshUrl())
    const request = requestFor(target)
    await target.createUser(userOf('ada'), [], request)
    await expect(target.createUser(userOf('Ada'), [], request)).rejects.toMatchObject({ code: 'CONFLICT' })
    await target.createUser(userOf('ada'), [], request)
    expect(hasLookups(target) && (await target.searchUsers({ offset: 0, limit: 10 })).total).toBe(1)
  })

  test('whoever is new inherits no membership that somebody of the same login left behind', async () => {
    const url = await freshUrl()
    await makeApplication(url)
    await runOn(
      url,
      'create table held (who text not null, what text not null)',
      "insert into held values ('ada', 'admins')",
    )
    const target = await openTarget(url, {
      userTable: 'People',
      userName: 'login',
      userPrimaryKey: 'person_id',
      groupTable: 'held',
      groupName: 'what',
      groupUserKey: 'who',
      groupUserBy: 'login',
    })
    const request = requestFor(target)
    await target.createUser(userOf('ada', {}, ['crew']), [], request)
    expect((await target.findUser('ada', [], request))?.groups).toEqual(['crew'])
  })
})
