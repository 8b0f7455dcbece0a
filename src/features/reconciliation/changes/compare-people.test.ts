import { describe, expect, test } from 'vitest'
import type { AccountName, Difference } from '#features/reconciliation/plan/difference.ts'
import type { ComparedSystems } from '#features/reconciliation/read/systems.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import { addUser, comparedSystems, idOf, memoryTarget } from '#testing/reconciliation/compared-systems.ts'
import { comparePeople } from './compare-people.ts'

const spec = `
attributes: [{ name: mail, source: mail, sourceType: user }]
correlation: [login, { attribute: mail }]
missing: create
different: change
extra: deactivate
`

async function compared(systems: ComparedSystems, logins: readonly string[], resumeAt?: string) {
  const differences: Difference[] = []
  const places: string[] = []
  const counts = { source: 0, agree: 0 }
  for await (const part of comparePeople(systems, logins, resumeAt)) {
    differences.push(...part.differences)
    places.push(part.resumeAt)
    counts.source += part.counts.source
    counts.agree += part.counts.agree
  }
  const lines = differences.map(({ kind, source, target, action }) =>
    [kind, `${source?.login ?? ''}>${target?.login ?? ''}`, action].join(' '),
  )
  return { lines, counts, places }
}

async function open() {
  const [source, target] = [memoryTarget(), memoryTarget()]
  const mail = (login: string) => ({ mail: [`${login}@x.test`] })
  for (const login of ['ann', 'bea', 'cyd', 'new']) await addUser(source, login, mail(login))
  await addUser(source, 'off', { ...mail('off'), active: ['false'] })
  for (const login of ['ann', 'bea', 'off', 'left', 'other']) await addUser(target, login, mail(login))
  await addUser(target, 'old', mail('new'))
  await addUser(target, 'cyd', { mail: ['wrong@x.test'] })
  const systems = await comparedSystems({
    source,
    target,
    spec,
    from: '{ target: people, filter: "(|(!(active=*))(active=true))" }',
  })
  return systems
}

test('only the named people are compared, also those who left the source or its scope', async () => {
  const systems = await open()
  const { lines, counts } = await compared(systems, ['ann', 'cyd', 'off', 'left', 'nobody'])
  expect(lines).toEqual(['different cyd>cyd change', 'extra >off deactivate', 'extra >left deactivate'])
  expect(counts).toEqual({ source: 3, agree: 2 })
})

test('an account that is linked to someone who left, by the login where the source has no ids', async () => {
  const systems = await open()
  const { target } = systems
  await addUser(target as ReturnType<typeof memoryTarget>, 'elsewhere')
  const stored = [{ source: 'off', target: await idOf(target, 'elsewhere') }]
  const { lines } = await compared(
    {
      ...systems,
      source: { ...systems.source, hasIds: false },
      links: async (names) => stored.filter(({ source }) => names.includes(source)),
      linksByTarget: async (names) => stored.filter((link) => names.includes(link.target)),
    },
    ['off'],
  )
  expect(lines).toEqual(['extra >off deactivate', 'extra >elsewhere deactivate'])
})

test('a renamed person is one difference, under the new login or both', async () => {
  const systems = await open()
  expect((await compared(systems, ['new'])).lines).toEqual(['different new>old change'])
  expect((await compared(systems, ['old', 'new'])).lines).toEqual(['different new>old change'])
})

describe('a person who cannot be compared', () => {
  const failing = async (code: ErrorCode) => {
    const systems = await open()
    const find = async (name: AccountName) => {
      if (name.login === 'ann') throw new GatewayError(code, 'her entry is damaged')
      return systems.source.find(name)
    }
    return { ...systems, source: { ...systems.source, find } }
  }
  const rows = ['unknown ann> report', 'different cyd>cyd change']

  test('is unknown, and the others are compared', async () => {
    for (const code of ['UNPROCESSABLE', 'TARGET_FAILED'] as const) {
      const { lines, counts } = await compared(await failing(code), ['ann', 'cyd', 'bea'])
      expect(lines).toEqual(rows)
      expect(counts).toEqual({ source: 2, agree: 1 })
    }
    expect((await compared(await failing('UNPROCESSABLE'), ['ann'])).lines).toEqual(rows.slice(0, 1))
  })

  test('is compared again if it may pass, and fails the plan if it may concern everyone', async () => {
    const away = await failing('TARGET_UNREACHABLE')
    await expect(compared(away, ['ann', 'cyd'])).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    await expect(compared(await failing('TARGET_FAILED'), ['ann'])).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  })
})

test('many people are compared in parts, and again only behind the last one', async () => {
  const systems = await open()
  const logins = ['off', ...Array.from({ length: 25 }, (_, i) => `nobody${i}`), 'cyd', 'OFF']
  const whole = await compared(systems, logins)
  expect(whole.lines).toEqual(['extra >off deactivate', 'different cyd>cyd change'])
  expect(whole.places).toHaveLength(2)
  expect((await compared(systems, logins, whole.places[0])).lines).toEqual(['different cyd>cyd change'])
  expect((await compared(systems, logins, whole.places[1])).lines).toEqual([])
})
