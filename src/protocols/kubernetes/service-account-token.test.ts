import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import { silentLogger } from '#kernel/logger.ts'
import { createClusterKeySet } from '#protocols/kubernetes/service-account-token.ts'

test('an API server that does not answer: error and log name the cluster and the reason', async () => {
  const logged: unknown[] = []
  const log: Logger = { ...silentLogger, warn: (...args) => void logged.push(args) }
  const down = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.1:6443'))
  const keys = createClusterKeySet(down, systemClock, log)
  await expect(keys.find('RS256', 'a')).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
    message: 'cannot fetch the keys of the cluster: connect ECONNREFUSED 10.0.0.1:6443',
  })
  expect(logged).toEqual([[expect.any(String), expect.objectContaining({ issuer: 'the cluster' })]])
})
