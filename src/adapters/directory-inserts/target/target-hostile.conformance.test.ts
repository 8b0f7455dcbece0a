import { onTestFinished, test } from 'vitest'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import { Dn } from '#identity/dn.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { openStorage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileInsertTrial } from '#testing/hostile/hostile-insert-trial.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import insertOfTarget from './target.ts'

const suffix = Dn.parse('ou=staff,o=Tremolo')

test('each hostile value passes through every lookup unchanged, and finds no other user', {
  timeout: trialMillis,
}, async () => {
  const storage = openStorage({ url: `sqlite:${temporaryFolder()}/test.db`, clock: systemClock, log: silentLogger })
  await storage.ready()
  const people = databaseTarget(
    storage.userDirectory({ name: 'people' }),
    new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost),
  )
  onTestFinished(async () => {
    await people.close()
    await storage.close()
  })
  const { request } = targetFixture(people, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })
  const insert = await insertOfTarget
    .prepare(fakeParams({ target: 'people' }), noIssues(), fakeParseContext())
    .create({ ...fakeModuleHost({ targets: { people } }), suffix })
  await hostileInsertTrial('target', {
    insert,
    suffix,
    person: (login) => suffix.child('uid', login),
    group: (name) => suffix.child('ou', 'groups').child('cn', name),
    attribute: 'mail',
    addGroup: (name) => people.createGroup(name, {}, request),
    removeGroup: (name) => people.deleteGroup(name, request),
    addPerson: (login, mail, group) => people.createUser(userOf(login, { mail }, [group]), ['mail'], request),
    removePerson: (login) => people.deleteUser(userOf(login), request),
  })
})
