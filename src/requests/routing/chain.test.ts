import { describe, expect, test } from 'vitest'
import { directoryLink } from '#identity/directory.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { type Chain, type ChainCall, ChainRunner } from './chain.ts'

const request = fakeRequest({})
const begins: ChainCall = {
  begin: ({ mechanism }, { root }, found) => mechanism.begin({ request, subject: found, root }),
}
const says = (outcome: AuthOutcome): AuthMechanism => ({ begin: async () => outcome })
const authenticated: AuthOutcome = { kind: 'authenticated', subject: subject('uid=ada,o=Tremolo') }
const other: AuthOutcome = { kind: 'authenticated', subject: subject('uid=grace,o=Tremolo') }
const rejected: AuthOutcome = { kind: 'rejected', reason: 'bad token', headers: { 'www-authenticate': 'Bearer' } }

function chain(name: string, links: [AuthOutcome, boolean][], finishOnRequiredSuccess = false): Chain {
  return {
    name,
    level: 20,
    root: 'o=Tremolo',
    finishOnRequiredSuccess,
    links: links.map(([outcome, required], i) => ({ name: `m${i}`, required, mechanism: says(outcome) })),
  }
}

const run = (one: Chain, ...others: Chain[]) =>
  new ChainRunner(new Map([one, ...others].map((c) => [c.name, c]))).run(one, begins)

describe('ChainRunner', () => {
  test('gives the subject the chain and its level', async () => {
    const outcome = await run(chain('c', [[authenticated, true]]))
    expect(outcome).toMatchObject({ kind: 'authenticated', subject: { uid: 'ada', level: 20, chain: 'c' } })
    const higher = { ...chain('d', [[authenticated, true]]), level: 35 }
    expect(await run(higher)).toMatchObject({ subject: { level: 35, chain: 'd' } })
  })

  test('ends at the first required mechanism that rejects', async () => {
    const asked: string[] = []
    const link = (name: string, outcome: AuthOutcome) => {
      const begin = async () => {
        asked.push(name)
        return outcome
      }
      return { name, required: true, mechanism: { begin } }
    }
    const links = [link('first', authenticated), link('second', rejected), link('third', authenticated)]
    expect(await run({ ...chain('c', []), links })).toEqual(rejected)
    expect(asked).toEqual(['first', 'second'])
  })

  test('continues after an optional one, and reports its rejection if no user was established', async () => {
    expect(
      await run(
        chain('c', [
          [rejected, false],
          [authenticated, true],
        ]),
      ),
    ).toMatchObject({ kind: 'authenticated' })
    expect(
      await run(
        chain('c', [
          [rejected, false],
          [{ kind: 'passed' }, true],
        ]),
      ),
    ).toEqual(rejected)
  })

  test('a chain in which every link passes and no user is established is a rejection', async () => {
    expect(await run(chain('c', [[{ kind: 'passed' }, true]]))).toMatchObject({ kind: 'rejected' })
    expect(await run(chain('c', []))).toMatchObject({ kind: 'rejected' })
  })

  test('an included chain runs in place, and the subject belongs to the outer chain', async () => {
    const inner = chain('inner', [[authenticated, true]])
    const outer = chain('outer', [[{ kind: 'include', chain: 'inner' }, true]])
    expect(await run(outer, inner)).toMatchObject({ subject: { chain: 'outer' } })
    const failing = chain('inner', [[rejected, true]])
    expect(await run(outer, failing)).toEqual(rejected)
  })

  test('an included chain that rejects establishes no user', async () => {
    const inner = chain('inner', [
      [authenticated, true],
      [rejected, true],
    ])
    const optional = chain('outer', [[{ kind: 'include', chain: 'inner' }, false]])
    expect(await run(optional, inner)).toEqual(rejected)
  })

  test('a chain that includes itself fails instead of looping', async () => {
    await expect(run(chain('c', [[{ kind: 'include', chain: 'c' }, true]]))).rejects.toThrow('cannot include')
  })

  test('finishOnRequiredSuccess skips the following links', async () => {
    const links: [AuthOutcome, boolean][] = [
      [authenticated, true],
      [other, false],
    ]
    expect(await run(chain('c', links, true))).toMatchObject({ subject: { uid: 'ada' } })
    expect(await run(chain('c', links))).toMatchObject({ subject: { uid: 'grace' } })
  })

  test('if none is required, the first link that establishes a user is enough', async () => {
    const links: [AuthOutcome, boolean][] = [
      [rejected, false],
      [authenticated, false],
      [other, false],
    ]
    expect(await run(chain('c', links))).toMatchObject({ subject: { uid: 'ada' } })
  })

  test('returns which links to ask again, since the user was found in the directory', async () => {
    const ada = subject('uid=ada,o=Tremolo')
    const filter = { kind: 'present', attribute: 'uid' } as const
    const found = (): AuthOutcome => ({
      kind: 'authenticated',
      subject: { ...ada, link: directoryLink(ada, { filter, uidAttr: 'uid' }) },
    })
    const gate: AuthMechanism = { begin: async () => ({ kind: 'passed' }), renew: async () => ({ kind: 'passed' }) }
    const links = (...mechanisms: AuthMechanism[]): Chain => ({
      ...chain('c', []),
      links: mechanisms.map((mechanism, i) => ({ name: `m${i}`, required: true, mechanism })),
    })
    const steps = async (one: Chain) => {
      const outcome = await run(one)
      return outcome.kind === 'authenticated' ? outcome.renewals.map(({ name }) => name) : undefined
    }
    expect(await steps(links(says(found()), gate, says({ kind: 'passed' }), gate))).toEqual(['m1', 'm3'])
    expect(await steps(links(says(found()), gate, says(found()), gate))).toEqual(['m3'])
    expect(await steps(links(says(authenticated), gate))).toEqual([])
    const runner = new ChainRunner(new Map([['c', links(says(found()), gate)]]))
    const step = { chain: 'c', link: 5, name: 'm1' }
    expect(await runner.renew(ada, [step])).toBe(ada)
    for (const missing of [
      { ...step, name: 'm0' },
      { ...step, name: 'gone' },
      { ...step, chain: 'gone' },
    ]) {
      expect(await runner.renew(ada, [missing])).toMatchObject({ kind: 'rejected' })
    }
  })

  test('one response of a mechanism stays one subject, so that decisions can be cached by it', async () => {
    const one = chain('c', [[authenticated, true]])
    const runner = new ChainRunner(new Map([['c', one]]))
    const [first, second] = [await runner.run(one, begins), await runner.run(one, begins)]
    expect(first.kind === 'authenticated' && second.kind === 'authenticated' && first.subject === second.subject).toBe(
      true,
    )
  })
})
