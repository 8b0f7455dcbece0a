import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import type { LookupTarget } from '#sdk/target/target.ts'
import {
  addUser,
  comparedSystems,
  compareWhole,
  type Given,
  idOf,
  linesOf,
  memoryTarget,
  quietRequest,
} from '#testing/reconciliation/compared-systems.ts'
import { compare } from './compare.ts'
import { answers, compareOne } from './compare-one.ts'

const mapping = `attributes:
  - { name: TREMOLO_USER_ID, source: TREMOLO_USER_ID, sourceType: user }
  - { name: mail, source: mail, sourceType: user }
`
const everything = `${mapping}correlation: [{ id: externalId }, login, { attribute: mail }]
missing: create
different: change
extra: deactivate
groups: [staff, admins]
`

async function open(given: Partial<Given> = {}) {
  const source = memoryTarget()
  const target = memoryTarget()
  const systems = await comparedSystems({ source, target, spec: everything, ...given })
  const lines = async (resumeAt?: string) => linesOf((await compareWhole(systems, resumeAt)).differences)
  return { source, target, systems, lines, compared: (resumeAt?: string) => compareWhole(systems, resumeAt) }
}

describe('a comparison', () => {
  test('finds drift of every kind, each with its rule and a reason', async () => {
    const { source, target, compared } = await open()
    await addUser(source, 'same', { mail: ['same@x'] }, ['staff', 'other'])
    await addUser(target, 'SAME', { mail: ['same@x'] }, ['STAFF', 'more'])
    await addUser(source, 'new', { mail: ['new@x'] }, ['admins'])
    await addUser(source, 'mailed', { mail: ['MAIL@x'] })
    await addUser(target, 'elsewhere', { mail: ['mail@X'] })
    await addUser(source, 'renamed', { mail: ['r@x'] })
    await addUser(target, 'former', { mail: ['r@x'], externalId: [(await idOf(source, 'renamed')) ?? ''] })
    await addUser(source, 'changed', { mail: ['c2@x'] }, ['staff'])
    await addUser(target, 'changed', { mail: ['c1@x'] }, ['admins'])
    await addUser(target, 'extra', { mail: ['extra@x'] })
    await addUser(target, 'gone', { mail: ['gone@x'], active: ['false'] })
    const { differences, counts } = await compared()
    expect(linesOf(differences)).toEqual([
      'different changed → changed by login: change',
      'different mailed → elsewhere by mail: change',
      'different renamed → former by externalId: change',
      'extra – → extra: deactivate',
      'missing new → –: create',
    ])
    expect(counts).toEqual({ source: 5, target: 6, agree: 2 })
    const reasons = new Map(
      differences.map(({ source: person, target: account, reason }) => [person?.login ?? account?.login, reason]),
    )
    expect(Object.fromEntries(reasons)).toEqual({
      changed: 'Mail differs, and 2 memberships differ. The change takes all compared memberships.',
      mailed: 'The login is "elsewhere" instead of "mailed", and mail differs.',
      renamed: 'The login is "former" instead of "renamed".',
      extra: 'No person of the source has this account.',
      new: 'No account belongs to this person.',
    })
    expect(differences.find(({ source: person }) => person?.login === 'new')).toMatchObject({
      attributes: [{ name: 'mail', from: [], to: ['new@x'] }],
      groups: { add: ['admins'], remove: [] },
    })
  })

  test('never guesses: several accounts, several people, a login that is taken', async () => {
    const { source, target, compared } = await open()
    await addUser(source, 'two', { mail: ['two@x'] })
    await addUser(target, 'two-a', { mail: ['two@x'] })
    await addUser(target, 'two-b', { mail: ['TWO@x'] })
    await addUser(source, 'one-a', { mail: ['one@x'] })
    await addUser(source, 'one-b', { mail: ['one@x'] })
    await addUser(target, 'one', { mail: ['one@x'] })
    const { differences, counts } = await compared()
    expect(linesOf(differences)).toEqual([
      'ambiguous one-a → – by mail: report',
      'ambiguous one-b → – by mail: report',
      'ambiguous two → – by mail: report',
    ])
    expect(counts).toEqual({ source: 3, target: 3, agree: 0 })
    expect(differences.map(({ candidates }) => candidates?.map(({ login }) => login).sort())).toEqual(
      expect.arrayContaining([['two-a', 'two-b'], ['one-b'], ['one-a']]),
    )
  })

  test('does not create an account whose login another one has, nor two of one login', async () => {
    const spec = `${mapping.replace('source: TREMOLO_USER_ID', 'source: nick')}correlation: [{ attribute: mail }]\nmissing: create\nextra: delete\n`
    const { source, target, lines } = await open({ spec })
    await addUser(source, 'a', { nick: ['root'], mail: ['a@x'] })
    await addUser(target, 'root', { mail: ['root@x'] })
    await addUser(source, 'b', { nick: ['twin'], mail: ['b@x'] })
    await addUser(source, 'c', { nick: ['TWIN'], mail: ['c@x'] })
    expect(await lines()).toEqual(['ambiguous a → root: report', 'ambiguous b → –: report', 'ambiguous c → –: report'])
  })

  test('a link decides before every rule, also for someone who is not in scope', async () => {
    const source = memoryTarget()
    const target = memoryTarget()
    await addUser(source, 'ada', { mail: ['a@x'] })
    await addUser(source, 'bob', { mail: ['b@x'] })
    await addUser(source, 'carl', { mail: ['c@x'] })
    await addUser(source, 'left', { mail: ['l@x'], status: ['left'] })
    await addUser(target, 'ada', { mail: ['a@x'] })
    await addUser(target, 'x', { mail: ['b@x'] })
    await addUser(target, 'carl', { mail: ['c@x'] })
    const [ada, bob, carl, left] = await Promise.all(['ada', 'bob', 'carl', 'left'].map((login) => idOf(source, login)))
    const [first, x, third] = await Promise.all(['ada', 'x', 'carl'].map((login) => idOf(target, login)))
    const from = '{ target: people, filter: (|(!(status=*))(!(status=left))) }'
    const links = [
      { source: ada ?? '', target: x },
      { source: bob ?? '', target: 'gone' },
      { source: carl ?? '' },
      { source: left ?? '', target: third },
    ]
    const systems = await comparedSystems({ source, target, spec: everything, from, links })
    const { differences } = await compareWhole(systems)
    expect(first).toBeDefined()
    expect(linesOf(differences)).toEqual([
      // The link of carl says that he has none, and his login belongs to an account of another person.
      'ambiguous carl → carl: report',
      'different ada → x by link: change',
      'extra – → ada: deactivate',
      'missing bob → –: create',
    ])
  })

  test('accounts outside of the scope are not touched, and who has one gets no second one', async () => {
    const spec = `${everything}scope: { filter: (type=person), groups: [staff] }\n`
    const { source, target, compared } = await open({ spec })
    await addUser(source, 'ada', { mail: ['new@x'] })
    await addUser(target, 'ada', { mail: ['old@x'], type: ['robot'] }, ['staff'])
    await addUser(target, 'robot', { type: ['robot'] }, ['staff'])
    await addUser(target, 'guest', { type: ['person'] })
    await addUser(target, 'leaver', { type: ['person'] }, ['staff'])
    const { differences, counts } = await compared()
    expect(linesOf(differences)).toEqual(['extra – → leaver: deactivate'])
    expect(counts).toEqual({ source: 0, target: 1, agree: 0 })
  })

  test('only people that match and are members count', async () => {
    const from = '{ target: people, filter: (active=true), groups: [Staff] }'
    const { source, target, lines } = await open({ from })
    await addUser(source, 'in', { active: ['true'] }, ['staff'])
    await addUser(source, 'off', { active: ['false'] }, ['staff'])
    await addUser(source, 'guest', { active: ['true'] }, ['guests'])
    await addUser(target, 'guest')
    expect(await lines()).toEqual(['extra – → guest: deactivate', 'missing in → –: create'])
  })

  test('decides for a person whose account is deactivated, and for accounts that already are as they should be', async () => {
    const { source, target, lines } = await open()
    await addUser(source, 'back')
    await addUser(target, 'back', { active: ['false'] })
    expect(await lines()).toEqual(['different back → back by login: change'])
    const removing = await open({ spec: `${mapping}extra: removeMemberships\ngroups: [staff]\n` })
    await addUser(removing.target, 'out', {}, ['other'])
    await addUser(removing.target, 'still', {}, ['staff', 'other'])
    const { differences } = await removing.compared()
    expect(differences).toMatchObject([{ target: { login: 'still' }, groups: { add: [], remove: ['staff'] } }])
  })

  test('the attributes of the target are made by its own mapping from what workflows get', async () => {
    const spec =
      'attributes: [{ name: display, source: "${first} ${last}", sourceType: composite }, { name: password, source: secret, sourceType: user }]\ndifferent: change\n'
    const targetAttributes =
      '[{ name: cn, source: display, sourceType: user }, { name: userPassword, source: password, sourceType: user }]'
    const { source, target, systems, compared } = await open({ spec, targetAttributes })
    await addUser(source, 'ada', { first: ['Ada'], last: ['Lovelace'], secret: ['s1'] })
    await addUser(target, 'ada', { cn: ['Ada'], userPassword: ['s2'] })
    const { differences } = await compared()
    expect(differences).toMatchObject([{ attributes: [{ name: 'cn', from: ['Ada'], to: ['Ada Lovelace'] }] }])
    const present = await compareOne(systems, { source: differences[0]?.source })
    expect(present?.user?.attributes.values('display')).toEqual(['Ada Lovelace'])
  })

  test('continues behind each part, from files that are gone', async () => {
    const { source, target, systems, compared } = await open()
    for (let i = 0; i < 1100; i++) {
      await addUser(source, `new${i}`)
      if (i < 700) await addUser(target, `old${i}`)
    }
    const whole = await compared()
    expect(whole.differences).toHaveLength(1800)
    const places: string[] = []
    for await (const { resumeAt, counts } of compare(systems)) {
      if (counts.source + counts.target > 0) places.push(resumeAt)
    }
    expect(places.length).toBeGreaterThan(4)
    let seen = 0
    for (const resumeAt of ['', ...places].slice(0, -1)) {
      const parts = compare(systems, resumeAt === '' ? undefined : resumeAt)
      for await (const { differences } of parts) {
        seen += differences.length
        if (differences.length > 0) break
      }
    }
    expect(seen).toBe(1800)
  })

  test('compares a person, or an account, alone as in a whole plan', async () => {
    const { source, target, systems, compared } = await open()
    await addUser(source, 'two', { mail: ['two@x'] })
    await addUser(target, 'two-a', { mail: ['two@x'] })
    await addUser(target, 'two-b', { mail: ['TWO@x'] })
    await addUser(source, 'changed', { mail: ['c2@x'] }, ['staff'])
    await addUser(target, 'changed', { mail: ['c1@x'] })
    await addUser(target, 'extra')
    await addUser(source, 'new')
    const { differences } = await compared()
    expect(differences).toHaveLength(4)
    for (const difference of differences)
      expect((await compareOne(systems, difference))?.difference).toEqual(difference)
    expect(await compareOne(systems, { source: { login: 'nobody', id: 'none' } })).toBeUndefined()
    expect(await compareOne(systems, { target: { login: 'nobody', id: 'none' } })).toBeUndefined()
    // Someone gets the account meanwhile.
    const extra = differences.find(({ kind }) => kind === 'extra')
    await addUser(source, 'extra')
    expect(await compareOne(systems, { target: extra?.target })).toBeUndefined()
  })

  test('returns the user of the read that it compared', async () => {
    const { source, systems } = await open()
    await addUser(source, 'ada', { mail: ['old@x'] })
    const find = async (name: Parameters<typeof systems.source.find>[0]) => {
      const before = await systems.source.find(name)
      await source.syncUser(
        userOf('ada', { mail: ['new@x'] }),
        { addOnly: false, keepGroups: true, attributes: ['mail'] },
        quietRequest,
      )
      return before
    }
    const present = await compareOne({ ...systems, source: { ...systems.source, find } }, { source: { login: 'ada' } })
    expect(present?.difference.attributes).toEqual([{ name: 'mail', from: [], to: ['old@x'] }])
    expect(present?.user?.attributes.values('mail')).toEqual(['old@x'])
  })

  test('knows whether both systems answer for accounts', async () => {
    const { target, systems } = await open()
    const away = async () => {
      throw new GatewayError('TARGET_UNREACHABLE', 'away')
    }
    expect(await answers(systems)).toBe(true)
    expect(await answers({ ...systems, source: { ...systems.source, count: away } })).toBe(false)
    for (const login of ['ada', 'bob']) await addUser(target, login)
    expect(await answers(systems)).toBe(true)
    const without = (failing: (login: string) => boolean) => ({
      ...systems,
      target: {
        ...target,
        lookupUserById: async (id: string) => {
          const found = await target.lookupUserById(id)
          return failing(found?.userID ?? '') ? away() : found
        },
      },
    })
    expect(await answers(without((login) => login === 'ada'))).toBe(true)
    expect(await answers(without(() => true))).toBe(false)
    const stopped = AbortSignal.abort()
    await expect(answers({ ...without(() => true), signal: stopped })).rejects.toThrow()
  })

  test('looks for the person of an account also where the login cannot be asked backwards', async () => {
    const spec = `attributes: [{ name: TREMOLO_USER_ID, source: "\${first}.\${last}", sourceType: composite }]\nextra: delete\n`
    const { source, target, systems, compared } = await open({ spec })
    await addUser(source, '1', { first: ['Ada'], last: ['L'] })
    await addUser(target, 'ada.l')
    await addUser(target, 'eve.x')
    const { differences } = await compared()
    expect(linesOf(differences)).toEqual(['extra – → eve.x: delete'])
    expect((await compareOne(systems, { target: differences[0]?.target }))?.difference).toEqual(differences[0])
    const ada = await target.lookupUserByLogin('ada.l')
    expect(await compareOne(systems, { target: { id: ada?.id, login: 'ada.l' } })).toBeUndefined()
    // Each turn of a worker reads the logins again.
    const turn = () => ({ ...systems, signal: new AbortController().signal })
    const extra = { target: differences[0]?.target }
    expect((await compareOne(turn(), extra))?.difference).toEqual(differences[0])
    await addUser(source, '2', { first: ['Eve'], last: ['X'] })
    expect(await compareOne(turn(), extra)).toBeUndefined()
  })

  test('an extra account alone is as unsure as in a whole plan, where a login is made by a template', async () => {
    const spec = `attributes: [{ name: TREMOLO_USER_ID, source: "\${first}.\${last}", sourceType: composite }]\ncorrelation: [login, { attribute: mail }]\nextra: delete\n`
    const { source, target, systems } = await open({ spec })
    const { mapping: own } = systems
    const user = own.user.bind(own)
    own.user = async (found) => {
      if (found.attributes.has('first')) return user(found)
      throw new GatewayError('BAD_REQUEST', 'no first name', { publicText: 'The first name is missing.' })
    }
    await addUser(source, '1', { mail: ['eve@x'] })
    await addUser(target, 'eve.y', { mail: ['eve@x'] })
    await addUser(target, 'gone')
    const differs = async () => {
      const { differences } = await compareWhole(systems)
      const extra = differences.find(({ target: name }) => name?.login === 'gone')
      const turn = { ...systems, signal: new AbortController().signal }
      expect((await compareOne(turn, { target: extra?.target }))?.difference.action).toBe(extra?.action)
      return extra?.action
    }
    // The account of the person who could not be mapped is found by mail.
    expect(await differs()).toBe('delete')
    await addUser(source, '2')
    expect(await differs()).toBe('report')
    for (let i = 0; i < 30; i++) await addUser(source, `no-${i}`)
    expect(await differs()).toBe('report')
  })

  test('names groups that the target lacks, and moves members of a group that the source renames or deletes', async () => {
    const { source, target, systems, compared } = await open({ spec: `${mapping}different: change\ngroups: all\n` })
    await addUser(source, 'ada', {}, ['staff'])
    await addUser(target, 'ada', {}, ['staff'])
    const [none] = (await compared()).differences
    expect(none).toBeUndefined()
    const only = async () => {
      const [one] = (await compared()).differences
      expect((await compareOne(systems, { source: one?.source }))?.difference).toEqual(one)
      return one
    }
    await source.updateGroup('staff', { attributes: {}, newName: 'crew' }, quietRequest)
    expect(await only()).toMatchObject({
      groups: { add: ['crew'], remove: ['staff'] },
      reason:
        '2 memberships differ. The change takes all compared memberships. The target does not have the group "crew".',
    })
    await source.deleteGroup('crew', quietRequest)
    expect(await only()).toMatchObject({ groups: { add: [], remove: ['staff'] }, removes: true })
  })

  test('an externalId connects exactly, and other attributes without regard to letter case', async () => {
    const spec = `${mapping}correlation: [{ attribute: externalId }]\nmissing: create\n`
    const { source, target, systems, lines } = await open({ spec })
    await addUser(source, 'ada', { externalId: ['A1'] })
    await addUser(target, 'x', { externalId: ['a1'] })
    expect(await lines()).toEqual(['extra – → x: report', 'missing ada → –: create'])
    expect(await compareOne(systems, { source: { id: await idOf(source, 'ada'), login: 'ada' } })).toMatchObject({
      difference: { kind: 'missing' },
    })
    await addUser(target, 'y', { externalId: ['A1'] })
    expect(await lines()).toContain('different ada → y by externalId: report')
  })

  test('a branch of the directory is a source', async () => {
    const person = (uid: string, more: Readonly<Record<string, string[]>> = {}) => ({
      dn: Dn.parse(`uid=${uid},ou=people,o=Tremolo`),
      attributes: Attributes.from({ uid: [uid], objectClass: ['inetOrgPerson'], entryUUID: [`id-${uid}`], ...more }),
    })
    const group = {
      dn: Dn.parse('cn=staff,ou=people,o=Tremolo'),
      attributes: Attributes.from({ uid: ['staff'], cn: ['staff'], objectClass: ['groupOfNames'] }),
    }
    const member = { memberOf: ['cn=staff,ou=people,o=Tremolo'] }
    const entries = [person('ada', { ...member, mail: ['a@x'] }), person('bob', member), person('guest'), group]
    const from = '{ directory: "ou=people,o=Tremolo", groups: [staff] }'
    const { target, lines, systems } = await open({ from, entries })
    await addUser(target, 'other', { externalId: ['id-ada'], mail: ['a@x'] }, ['staff'])
    expect(await lines()).toEqual(['different ada → other by externalId: change', 'missing bob → –: create'])
    expect(await compareOne(systems, { source: { id: 'id-bob', login: 'bob' } })).toMatchObject({
      difference: { kind: 'missing' },
      user: { userID: 'bob' },
    })
  })
})

describe('a side that cannot be believed', () => {
  const broken = async (change: (target: LookupTarget) => Partial<LookupTarget>) => {
    const source = memoryTarget()
    const target = memoryTarget()
    for (let i = 0; i < 1200; i++) await addUser(source, `user${i}`)
    for (let i = 0; i < 10; i++) await addUser(target, `extra${i}`)
    const spec = `${everything}limits: { percent: 100, accounts: 1000 }\n`
    const systems = await comparedSystems({ source: { ...source, ...change(source) }, target, spec })
    const seen: string[] = []
    const end = (async () => {
      for await (const { differences } of compare(systems)) seen.push(...linesOf(differences))
    })()
    return { end, seen }
  }

  test.each<[string, (target: LookupTarget) => Partial<LookupTarget>, object]>([
    [
      'ends early',
      (source) => ({
        searchUsers: async (query) => {
          const { next: _, ...page } = await source.searchUsers(query)
          return page
        },
      }),
      { code: 'TARGET_FAILED', message: expect.stringContaining('ended after 500 users, but says that it has 1200') },
    ],
    [
      'ends without anything',
      () => ({ searchUsers: async () => ({ items: [], total: 1200 }) }),
      { code: 'TARGET_FAILED', message: expect.stringContaining('ended after 0 users') },
    ],
    [
      'lies about its total',
      (source) => ({ searchUsers: async (query) => ({ ...(await source.searchUsers(query)), total: 700 }) }),
      { code: 'TARGET_FAILED', message: expect.stringContaining('returned 1200 users, but says that it has 700') },
    ],
    [
      'returns one page forever',
      (source) => ({
        searchUsers: async (query) => ({
          ...(await source.searchUsers({ ...query, after: undefined })),
          next: `${query.after ?? ''}x`,
        }),
      }),
      { code: 'TARGET_FAILED', message: expect.stringContaining('comes to no end') },
    ],
    [
      'repeats a page in place of another one',
      (source) => {
        let pages = 0
        return {
          searchUsers: async (query) =>
            source.searchUsers({ ...query, ...(++pages === 2 ? { after: undefined } : {}) }),
        }
      },
      { code: 'TARGET_FAILED' },
    ],
    [
      'has two users of one id',
      (source) => ({
        searchUsers: async (query) => {
          const page = await source.searchUsers(query)
          return { ...page, items: page.items.map((user) => ({ ...user, id: 'same' })) }
        },
      }),
      { code: 'TARGET_FAILED', message: expect.stringContaining('have the id "same"') },
    ],
    [
      'fails in the middle',
      (source) => ({
        searchUsers: async (query) => {
          if (query.after !== undefined) throw new GatewayError('TARGET_UNREACHABLE', 'down')
          return source.searchUsers(query)
        },
      }),
      { code: 'TARGET_UNREACHABLE' },
    ],
  ])('%s: nothing is concluded from it', async (_, change, error) => {
    const { end, seen } = await broken(change)
    await expect(end).rejects.toMatchObject(error)
    expect(seen).toEqual([])
  })

  test('a person who cannot be mapped leaves all accounts of no one alone', async () => {
    const source = memoryTarget()
    const target = memoryTarget()
    await addUser(source, 'ada')
    await addUser(source, 'bob')
    await addUser(target, 'eve')
    const systems = await comparedSystems({ source, target, spec: everything })
    const { mapping } = systems
    const user = mapping.user.bind(mapping)
    mapping.user = async (found) => {
      if (found.userID === 'bob')
        throw new GatewayError('BAD_REQUEST', 'no mail', { publicText: 'The mail is missing.' })
      return user(found)
    }
    const { differences } = await compareWhole(systems)
    expect(linesOf(differences)).toEqual([
      'extra – → eve: report',
      'missing ada → –: create',
      'unknown bob → –: report',
    ])
    expect(differences.map(({ reason }) => reason)).toContain(
      'What this person should have is not known: The mail is missing.',
    )
  })
})
