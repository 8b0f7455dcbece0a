import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { newRun } from '#testing/databases/workflow-stores.ts'
import { mailCommand } from './mail.ts'

async function withStorage<T>(folder: string, work: (storage: Storage) => Promise<T>): Promise<T> {
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  try {
    return await work(storage)
  } finally {
    await storage.close()
  }
}

/** A folder with a mail in each state but sent, as a gateway leaves it. */
async function dataFolder(): Promise<string> {
  const folder = temporaryFolder()
  const mail = { recipient: 'ada@example.com', subject: 'Access\u001b[2J', text: 'the secret text' }
  await withStorage(folder, async ({ mails, runs }) => {
    await runs.start(newRun('run', { head: { workflow: 'join', subject: 'ada' } }))
    await mails.add([{ ...mail, id: 'failed' }])
    for (const claimed of await mails.claim(1, 60_000)) await mails.failed(claimed, 'no such mailbox')
    await mails.add([{ ...mail, id: 'unknown', run: 'run', step: 1 }])
    for (const claimed of await mails.claim(1, -1)) await mails.handOver(claimed)
    await mails.add([{ ...mail, id: 'queued' }])
  })
  return folder
}

async function run(folder: string, ...args: string[]) {
  const output: string[] = []
  const errors: string[] = []
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await mailCommand([...args, '--data', folder], io)
  return { code, output: output.join('\n'), errors: errors.join('\n') }
}

test('list prints mails that need an operator, without their texts', async () => {
  const folder = await dataFolder()
  const { code, output } = await run(folder, 'list')
  expect(code).toBe(0)
  expect(output).toMatch(
    /unknown unknown to ada@example\.com: .*, of run run\n.*failed {2}failed to .*\n {4}no such mailbox/,
  )
  for (const hidden of ['queued', 'secret text', '\u001b']) expect(output).not.toContain(hidden)
  const { output: lines } = await run(folder, 'list', '--state', 'queued', '--output', 'json')
  expect(JSON.parse(lines)).toMatchObject([{ id: 'queued', state: 'queued', attempt: 0 }])
})

test('retry queues a mail again and audits it', async () => {
  const folder = await dataFolder()
  for (const id of ['unknown', 'failed']) {
    expect(await run(folder, 'retry', id, '--by', 'admin', '--reason', 'asked')).toMatchObject({
      code: 0,
      output: `${id} is queued`,
    })
  }
  expect((await run(folder, 'list')).output).toBe('')
  const { rows } = await withStorage(folder, ({ audit }) => audit.list({ limit: 10 }))
  expect(rows).toMatchObject([
    { subject: 'ada@example.com', value: 'retry failed' },
    {
      requestor: 'admin',
      subject: 'ada',
      workflow: { id: 'run', name: 'join' },
      value: 'retry unknown',
      reason: 'asked',
    },
  ])
})

test("a queued mail can't be retried, and wrong usage exits with 2", async () => {
  const folder = await dataFolder()
  expect(await run(folder, 'retry', 'none')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('no mail "none"'),
  })
  expect(await run(folder, 'retry', 'queued')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('only a mail that failed'),
  })
  for (const args of [
    ['list', '--state', 'lost'],
    ['list', '--limit', '0'],
    ['send', 'x'],
  ]) {
    expect((await run(folder, ...args)).code).toBe(2)
  }
})
