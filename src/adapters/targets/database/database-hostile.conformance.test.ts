import { expect, test } from 'vitest'
import type { Filter, SubstringFilter } from '#identity/filter/ast.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { openStorage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { databaseTarget } from './database.ts'
import { databaseSystem, Passwords } from './password-hash.ts'

onEachDatabase('the database target and hostile values', (freshUrl) => {
  test('a part of a word that ends in sigma is found within the word, and at its end', async () => {
    const storage = openStorage({ url: await freshUrl(), clock: systemClock, log: silentLogger })
    await storage.ready()
    const target = databaseTarget(
      storage.userDirectory({ name: 'people' }),
      new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost),
    )
    const { request } = targetFixture(target, { attributes: ['sn', 'b', 'c'], groups: ['a', 'b', 'c'] })
    for (const login of ['ΟΔΥΣΣΕΥΣ', 'Σ', 'other']) {
      await target.createUser(userOf(login, { sn: [login] }), ['sn'], request)
    }
    const found = async (attribute: string, part: Partial<SubstringFilter>) => {
      const filter: Filter = { kind: 'substring', attribute, any: [], ...part }
      return (await target.searchUsers({ filter, offset: 0, limit: 5 })).items.map(({ userID }) => userID)
    }
    for (const attribute of ['sn', 'userID']) {
      for (const initial of ['ΟΔΥΣ', 'οδυσ', 'οδυς', 'ΟΔΥΣΣΕΥΣ']) {
        expect(await found(attribute, { initial })).toEqual(['ΟΔΥΣΣΕΥΣ'])
        expect(await found(attribute, { any: [initial] })).toEqual(['ΟΔΥΣΣΕΥΣ'])
      }
      expect(await found(attribute, { final: 'υσ' })).toEqual(['ΟΔΥΣΣΕΥΣ'])
      expect(await found(attribute, { initial: 'Σ' })).toEqual(['Σ'])
      expect(await found(attribute, { initial: 'ΟΔΥΣ', caseExact: true })).toEqual(['ΟΔΥΣΣΕΥΣ'])
      expect(await found(attribute, { initial: 'οδυσ', caseExact: true })).toEqual([])
    }
    await target.close()
    await storage.close()
  })

  test('each passes through every lookup and write unchanged, and touches no other user', {
    timeout: trialMillis,
  }, async () => {
    const url = await freshUrl()
    const storage = openStorage({ url, clock: systemClock, log: silentLogger })
    await storage.ready()
    const target = databaseTarget(
      storage.userDirectory({ name: 'people' }),
      new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost),
      { system: databaseSystem({ name: 'people' }) },
    )
    const row = url.startsWith('sqlite:') ? 'database on SQLite' : 'database on PostgreSQL'
    try {
      await hostileTrial(row, target, { attributes: ['mail', 'givenName'] })
    } finally {
      await target.close()
      await storage.close()
    }
  })
})
