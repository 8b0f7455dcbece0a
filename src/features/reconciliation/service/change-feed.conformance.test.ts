import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { auditRow, minute, workflowStores } from '#testing/databases/workflow-stores.ts'
import { ChangeFeed } from './change-feed.ts'
import { ReconciliationPlans } from './plans.ts'

onEachDatabase('the feed of changes', (freshUrl) => {
  async function open() {
    const { one, two } = await workflowStores(await freshUrl())
    const feedOf = ({ reconciliations, accountLinks, changeFeeds }: typeof one) =>
      new ChangeFeed({
        feeds: changeFeeds,
        plans: new ReconciliationPlans({ store: reconciliations, links: accountLinks, clock: systemClock }),
        log: silentLogger,
        followed: () => [{ name: 'chat', counts: (target) => target === 'people' }],
      })
    const store = one.reconciliations
    const waiting = async () => (await store.list({ limit: 10 })).map(({ state, people }) => people ?? state)
    /** A worker ends the plan that is due. */
    const end = async () => {
      const plan = await store.claim('w', minute)
      if (plan === undefined) throw new Error('no plan is due')
      await store.fail(plan, 'ended by the test', [])
    }
    const change = (login: string, more = {}) =>
      one.audit.append([auditRow(`${login}-${performance.now()}`, { subject: login, ...more })])
    return { feed: feedOf(one), other: feedOf(two), waiting, end, change }
  }

  test('compares everyone first, and then those who change; nothing while a plan is under way is lost', async () => {
    const { feed, other, waiting, end, change } = await open()
    await change('before')
    await Promise.all([feed.look(), other.look()])
    expect(await waiting()).toEqual(['requested'])
    await change('ann')
    await feed.look()
    expect(await waiting()).toEqual(['requested'])
    await end()
    await change('bob')
    await other.look()
    expect(await waiting()).toEqual([['ann', 'bob'], 'failed'])
    await feed.look()
    await end()
    await feed.look()
    expect(await waiting()).toEqual([['ann', 'bob'], 'failed'])
  })

  test('leaves changes at other targets alone, and compares everyone after a group was renamed', async () => {
    const { feed, waiting, end, change } = await open()
    await feed.look()
    await end()
    await change('ann', { target: 'chat' })
    await feed.look()
    expect(await waiting()).toEqual(['failed'])
    await change('staff', { kind: 'entry', action: 'replace', attribute: 'name', value: 'team' })
    await feed.look()
    expect(await waiting()).toEqual(['requested', 'failed'])
  })
})
