import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import { newBranch, openLdap, quietRequest } from '#testing/ldap/ldap-target.ts'
import { sharedSlapd, startSlapd } from '#testing/ldap/slapd.ts'

describe.skipIf(inject('slapd') === '')('the order of values in an LDAP server', () => {
  async function open(slapd: Parameters<typeof openLdap>[0]) {
    const target = await openLdap(slapd, await newBranch(slapd), {})
    onTestFinished(async () => target.close?.())
    const sync = async (attributes: Record<string, string[]>): Promise<readonly TargetChange[]> => {
      const changes: TargetChange[] = []
      const request = { ...quietRequest, audit: (change: TargetChange) => void changes.push(change) }
      await target.syncUser(userOf('ann', attributes), syncOptions(['description', 'title']), request)
      return changes
    }
    const stored = async (name: string) =>
      (await target.findUser('ann', ['description', 'title'], quietRequest))?.attributes.values(name)
    await target.createUser(userOf('ann', { description: ['a', 'b'] }), ['description'], quietRequest)
    return { sync, stored }
  }
  const moved = { subject: 'attribute', action: 'replace', attribute: 'description', value: 'b' }
  const titled = { subject: 'attribute', action: 'add', attribute: 'title', value: 'CEO' }

  test('follows a change, and the same order again is none', async () => {
    const { sync, stored } = await open(await sharedSlapd())
    expect(await sync({ description: ['b', 'a'] })).toEqual([moved])
    expect(await stored('description')).toEqual(['b', 'a'])
    expect(await sync({ description: ['b', 'a'] })).toEqual([])
  })

  test('that the server decides is no change, and is asked for once', async () => {
    const slapd = await startSlapd({ overlays: ['valsort'] })
    onTestFinished(() => slapd.stop())
    const { sync, stored } = await open(slapd)
    expect(await sync({ description: ['b', 'a'], title: ['CEO'] })).toEqual([titled])
    expect(await stored('description')).toEqual(['a', 'b'])
    expect(await sync({ description: ['b', 'a'], title: ['CEO'] })).toEqual([])
  })
})
