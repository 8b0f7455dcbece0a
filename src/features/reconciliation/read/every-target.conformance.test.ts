import { expect, test } from 'vitest'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { hasGroups, hasLookups } from '#sdk/target/target.ts'
import {
  addUser,
  comparedSystems,
  compareWhole,
  linesOf,
  memoryTarget,
  quietRequest,
} from '#testing/reconciliation/compared-systems.ts'
import { onEachTarget } from '#testing/targets/each-target.ts'
import { compareOne } from './compare-one.ts'

onEachTarget('a comparison', (open) => {
  test('finds drift of every kind in both directions, and each person alone as in the plan', async () => {
    const { target, several, single } = await open()
    if (!hasLookups(target)) throw new Error('no look-ups')
    if (hasGroups(target) && (await target.findGroup('group1')) === undefined) {
      await target.createGroup('group1', {}, quietRequest)
    }
    const joined = hasGroups(target) ? ['group1'] : []
    const own = memoryTarget()
    const entry = (mail: string, title: string, names: readonly [string, string]) => ({
      [names[0]]: [mail],
      [names[1]]: [title],
    })
    const there = (login: string, mail: string, title: string, groups: readonly string[] = []) =>
      addUser(target, login, entry(mail, title, [several, single]), groups)
    const here = (login: string, mail: string, title: string, groups: readonly string[] = []) =>
      addUser(own, login, entry(mail, title, ['mail', 'title']), groups)
    await here('agrees', 'agrees@example.com', 'One', joined)
    await there('agrees', 'agrees@example.com', 'One', joined)
    await here('changes', 'changes@example.com', 'New', joined)
    await there('changes', 'changes@example.com', 'Old')
    await here('only-here', 'here@example.com', 'Here')
    await there('only-there', 'there@example.com', 'There', joined)
    await here('renamed', 'renamed@example.com', 'Same')
    await there('former', 'renamed@example.com', 'Same')
    await here('two', 'two@example.com', 'Two')
    await there('two-a', 'two@example.com', 'Two')
    await there('two-b', 'two@example.com', 'Two')
    await here('outside', 'outside@example.com', 'Other')
    await there('outside', 'outside@example.com', 'Robot')

    const spec = (from: readonly string[], to: readonly string[], scope: string) => `attributes:
  - { name: ${to[0]}, source: ${from[0]}, sourceType: user }
  - { name: ${to[1]}, source: ${from[1]}, sourceType: user }
correlation: [login, { source: ${from[0]}, target: ${to[0]} }]
groups: [group1]
scope: { filter: "(!(${scope}=Robot))" }
missing: create
different: change
extra: delete
`
    const to = await comparedSystems({
      source: own,
      target,
      spec: spec(['mail', 'title'], [several, single], single),
    })
    const written = await compareWhole(to)
    const renames = target.renamesUsers === true ? 'change' : 'report'
    expect(linesOf(written.differences)).toEqual([
      'ambiguous two → – by ${mail}: report'.replace('${mail}', several),
      'different changes → changes by login: change',
      `different renamed → former by ${several}: ${renames}`,
      'extra – → only-there: delete',
      'missing only-here → –: create',
    ])
    expect(written.counts).toEqual({ source: 5, target: 6, agree: 1 })
    expect(
      written.differences.find(({ kind, source }) => kind === 'different' && source?.login === 'changes'),
    ).toMatchObject({
      attributes: [{ name: single, from: ['Old'], to: ['New'] }],
      groups: { add: joined, remove: [] },
    })
    for (const difference of written.differences)
      expect((await compareOne(to, difference))?.difference).toEqual(difference)

    const back = await comparedSystems({
      source: target,
      target: own,
      spec: spec([several, single], ['mail', 'title'], 'title'),
    })
    const read = await compareWhole(back)
    expect(linesOf(read.differences)).toEqual([
      'ambiguous two-a → – by mail: report',
      'ambiguous two-b → – by mail: report',
      'different changes → changes by login: change',
      'different former → renamed by mail: change',
      'different outside → outside by login: change',
      'extra – → only-here: delete',
      'missing only-there → –: create',
    ])
    for (const difference of read.differences)
      expect((await compareOne(back, difference))?.difference).toEqual(difference)
    // Gone between the plan and its apply.
    await target.deleteUser(userOf('only-there'), quietRequest)
    expect(await compareOne(to, written.differences.find(({ kind }) => kind === 'extra') ?? {})).toBeUndefined()
    expect(await compareOne(back, read.differences.find(({ kind }) => kind === 'missing') ?? {})).toBeUndefined()
  })
})
