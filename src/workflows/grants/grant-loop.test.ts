import { expect, test } from 'vitest'
import { recordingLogger } from '#testing/workflows/workflow-fixture.ts'
import { GrantLoop } from './grant-revoker.ts'

test('runs at start and repeatedly, despite failures, until it is closed', async () => {
  const log = recordingLogger()
  let rounds = 0
  let stop: AbortSignal | undefined
  const third = Promise.withResolvers<void>()
  const loop = new GrantLoop({
    revokeDue: async (signal) => {
      stop = signal
      rounds++
      if (rounds === 3) third.resolve()
      if (rounds === 1) throw new Error('down')
      return 0
    },
    log,
    everyMillis: 1,
  })
  loop.start()
  await third.promise
  await loop.close()
  const ended = rounds
  loop.start()
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(rounds).toBe(ended)
  expect(stop?.aborted).toBe(true)
  expect(log.lines.map(({ message }) => message)).toEqual(['expired access could not be looked for'])
})
