import { expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import type { When } from '#kernel/time.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { Grant } from '#sdk/workflow/grant.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { runTask } from '#testing/workflows/run-task.ts'
import { customTask, issuesOf } from '#testing/workflows/workflow-fixture.ts'

const now = new Date('2026-01-02T03:04:05Z')
const grant = (more: Partial<Grant>): Grant => ({
  id: 'g1',
  target: 'store',
  subject: 'jjackson',
  kind: 'group',
  name: 'Vault',
  granted: now,
  expires: now,
  state: 'active',
  ...more,
})

async function extend(params: Record<string, string>, held: readonly Grant[], request = {}) {
  const extended: [string, When][] = []
  const changes: TargetChange[] = []
  await runTask(customTask('tasks.ExtendAccess', { target: 'store', ...params }), {
    request,
    host: fakeModuleHost({
      targets: { store: new MemoryTarget() },
      now: () => now.getTime(),
      grants: {
        ofSubject: async (login) => held.filter(({ subject }) => subject === login),
        extend: async (id, until) => {
          extended.push([id, until])
          return held.find((one) => one.id === id)
        },
      },
    }),
    forTarget: () => ({
      workflow: { id: 'run-1', name: 'w' },
      idempotencyKey: 'run-1/1',
      requestor: 'asker',
      params: {},
      log: silentLogger,
      audit: (change) => void changes.push(change),
    }),
  })
  return { extended, changes }
}

test('it needs an expiry date', () => {
  expect(issuesOf([customTask('tasks.ExtendAccess', { target: 'store' })])).toHaveLength(1)
  const both = { target: 'store', expiresAfter: '8h', expiresAt: '2027-01-01' }
  expect(issuesOf([customTask('tasks.ExtendAccess', both)])).toHaveLength(1)
})

test('a membership or an account with an expiry date is extended, with an audit entry', async () => {
  const held = [grant({}), grant({ id: 'g2', kind: 'user', name: 'jjackson' }), grant({ id: 'g3', target: 'x' })]
  const group = await extend({ group: '$g$', expiresAfter: '30d' }, held, { g: 'vault' })
  expect(group.extended).toEqual([['g1', { inMillis: 30 * 86_400_000 }]])
  expect(group.changes).toEqual([
    { subject: 'group', action: 'replace', attribute: 'expires', value: `vault until ${now.toISOString()}` },
  ])
  const account = await extend({ expiresAt: '$until$' }, held, { until: '2027-01-01T00:00:00Z' })
  expect(account.extended).toEqual([['g2', { at: new Date('2027-01-01T00:00:00Z') }]])
})

test('access without an expiry date, and access of others, does not change', async () => {
  const held = [grant({ subject: 'other' }), grant({ target: 'other' }), grant({ kind: 'user' })]
  for (const params of [{ group: 'vault', expiresAfter: '8h' }, { expiresAfter: '8h' }]) {
    await expect(extend(params, held)).rejects.toMatchObject({ code: 'CONFLICT' })
  }
})

test('a time before the present end is refused, and nothing changes', async () => {
  const held = [grant({ expires: new Date('2026-03-01T00:00:00Z') })]
  for (const params of [{ expiresAt: '2026-02-28T23:59:59Z' }, { expiresAfter: '8h' }]) {
    await expect(extend({ group: 'vault', ...params }, held)).rejects.toMatchObject({
      code: 'CONFLICT',
      publicText: 'The access lasts until 2026-03-01T00:00:00.000Z already. Request it with a later expiry date.',
    })
  }
  // A repeated step finds its own end.
  expect((await extend({ group: 'vault', expiresAt: '2026-03-01T00:00:00Z' }, held)).extended).toHaveLength(1)
})

test.each(['2026-01-01', 'x', '', '2999-01-01'])('"%s" is not a valid expiry date', async (until) => {
  const tried = extend({ group: 'vault', expiresAt: '$until$' }, [grant({})], { until })
  await expect(tried).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})
