import cluster from 'node:cluster'
import { expect, onTestFinished, test } from 'vitest'
import { WorkerProcess } from '#server/workers/worker-process.ts'

test('a worker that cannot be started has exited, and its supervisor continues', async () => {
  cluster.setupPrimary({ cwd: '/nowhere', stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  onTestFinished(() => {
    delete cluster.settings.cwd
  })
  const { exited } = new WorkerProcess({
    settings: { worker: 1, logText: false, logColors: false },
    writeOutput: () => {},
    writeError: () => {},
    onServes: () => {},
    allMetrics: async () => [],
  })
  expect(await exited).toMatchObject({ code: 1, signal: null, lastError: expect.stringContaining('ENOENT') })
})
