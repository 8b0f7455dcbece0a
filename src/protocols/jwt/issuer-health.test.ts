import { expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { DiscoveredKeySet } from './discovered-key-set.ts'
import { IssuerHealth } from './issuer-health.ts'

test('an issuer is unchecked, then down with the reason, then up', async () => {
  let now = 1_000_000
  const clock = () => new Date(now)
  const health = new IssuerHealth(clock)
  const issuer = 'https://id.example.com'
  let isDown = true
  const keys = new DiscoveredKeySet({
    issuer,
    clock,
    log: silentLogger,
    loaded: health.watch(issuer),
    fetch: async ({ href }) => {
      if (isDown) throw new Error(`connect ECONNREFUSED ${'x'.repeat(1000)}`)
      return href.endsWith('/keys') ? { keys: [] } : { issuer, jwks_uri: `${issuer}/keys` }
    },
  })
  health.watch('https://another.example.com')
  const another = { issuer: 'https://another.example.com', health: 'unchecked' }
  expect(health.list()).toEqual([another, { issuer, health: 'unchecked' }])
  await expect(keys.find('RS256', 'a')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  const problem = expect.stringMatching(/^connect ECONNREFUSED x{479}$/)
  expect(health.list()).toEqual([another, { issuer, health: 'down', time: clock(), problem }])
  isDown = false
  now += 60_000
  await keys.find('RS256', 'a')
  expect(health.list()).toEqual([another, { issuer, health: 'up', time: clock() }])
  // Another mechanism with the same issuer does not make it unknown again.
  health.watch(issuer)
  expect(health.list()).toEqual([another, { issuer, health: 'up', time: clock() }])
})
