import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SecondFactors } from '#engine/second-factors/second-factors.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { userCommand } from '#server/commands/user.ts'
import { openStorage } from '#storage/open.ts'
import { temporaryFolder } from '#testing/databases.ts'
import { fakeSecretBox } from '#testing/fake-login-services.ts'
import { subject } from '#testing/subjects.ts'

test('the second factors of one person go, and the audit tells who did it', async () => {
  const url = `sqlite:${join(temporaryFolder(), 'test.db')}`
  const secrets = fakeSecretBox('second factor')
  const people = [subject('uid=ada,ou=staff,o=Tremolo'), subject('uid=grace,ou=staff,o=Tremolo')]
  const look = async <T>(
    work: (factors: SecondFactors, storage: ReturnType<typeof openStorage>) => Promise<T>,
  ): Promise<T> => {
    const storage = openStorage({ url, clock: systemClock, log: silentLogger })
    await storage.ready()
    try {
      return await work(new SecondFactors({ store: storage.secondFactors, secrets, clock: systemClock }), storage)
    } finally {
      await storage.close()
    }
  }
  await look(async (factors) => {
    for (const person of people) {
      const factor = { id: person.uid, kind: 'totp', name: 'Phone', secret: {}, counter: 0 } as const
      await factors.add(person, factor, { requestId: 'r' })
    }
  })
  const said: string[] = []
  const io = { stdout: (line: string) => said.push(line), stderr: (line: string) => said.push(line) }
  const reset = (dn: string) => userCommand(['reset-factors', dn, '--database', url, '--by', 'root'], io)
  expect(await reset('UID=Ada,ou=Staff, o=Tremolo')).toBe(0)
  expect(await reset('uid=nobody,o=Tremolo')).toBe(1)
  expect(await reset('uid=ada,ou=staff,o=Tremolo')).toBe(1)
  expect(await reset('no name')).toBe(1)
  expect(said.slice(0, 3)).toEqual([
    '1 removed',
    'gatehouse user: nobody with second factors is called "uid=nobody,o=Tremolo"',
    'gatehouse user: nobody with second factors is called "uid=ada,ou=staff,o=Tremolo"',
  ])
  await look(async (factors, { audit }) => {
    expect((await Promise.all(people.map((person) => factors.of(person)))).map(({ length }) => length)).toEqual([0, 1])
    const [row] = (await audit.list({ limit: 5 })).rows.filter(({ action }) => action === 'delete')
    expect(row).toMatchObject({ requestor: 'root', subject: 'Ada', action: 'delete', attribute: 'second factor' })
  })
})
