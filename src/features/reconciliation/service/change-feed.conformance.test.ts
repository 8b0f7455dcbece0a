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
    const claim = async () => {
      const plan = await store.claim('w', minute)
      if (plan === undefined) throw new Error('no plan is due')
      return plan
    }
    /** A worker ends the plan that is due. */
    const end = async () => {
      const plan = await claim()
      if (plan.people === undefined) await store.endComparison(plan, { state: 'planned', audit: [] })
      else await store.discard(plan)
    }
    const change = (login: string, more = {}) =>
      one.audit.append([auditRow(`${login}-${performance.now()}`, { subject: login, ...more })])
    return { feed: feedOf(one), other: feedOf(two), feeds: one.changeFeeds, store, waiting, claim, end, change }
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
    expect(await waiting()).toEqual([['ann', 'bob'], 'planned'])
    await feed.look()
    await end()
    await feed.look()
    expect(await waiting()).toEqual(['planned'])
  })

  test('compares everyone after a plan of changed people failed, also if its position moves later', async () => {
    const { feed, feeds, store, waiting, claim, end, change } = await open()
    await feed.look()
    await end()
    await change('ann')
    const part = await feeds.read('chat')
    await feed.look()
    expect(await waiting()).toEqual([['ann'], 'planned'])
    await store.fail(await claim(), 'broken', [])
    await feeds.move('chat', part?.positions ?? new Map())
    await feed.look()
    expect(await waiting()).toEqual(['requested', ['ann'], 'planned'])
    await end()
    await feed.look()
    expect(await waiting()).toEqual(['planned', ['ann'], 'planned'])
  })

  test('compares everyone after a plan of changed people was paused for too long', async () => {
    const { feed, feeds, store, claim, end, change } = await open()
    await feed.look()
    await end()
    await change('ann')
    await feed.look()
    await store.change((await claim()).id, 'pause', { audit: [] })
    await store.expire(new Date(Date.now() + minute))
    expect(await feeds.read('chat')).toBeUndefined()
  })

  test('leaves changes at other targets alone, and compares everyone after a group was renamed', async () => {
    const { feed, waiting, end, change } = await open()
    await feed.look()
    await end()
    await change('ann', { target: 'chat' })
    await feed.look()
    expect(await waiting()).toEqual(['planned'])
    await change('staff', { kind: 'entry', action: 'replace', attribute: 'name', value: 'team' })
    await feed.look()
    expect(await waiting()).toEqual(['requested', 'planned'])
  })
})
