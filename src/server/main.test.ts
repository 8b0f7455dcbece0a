import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'

test('a command whose reader closes the pipe early does not exit as if it had finished', async () => {
  // Its output is larger than what a pipe holds.
  const command = spawn('bin/gatehouse', ['schema'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = once(command, 'exit')
  await once(command.stdout, 'data')
  command.stdout.destroy()
  expect(await exited).toEqual([141, null])
}, 60_000)
