import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { tokenMechanism } from '#testing/stories/story-documents.ts'

const delaySeconds = 8

test('with --shutdown-delay, a stopped gateway fails /ready and serves new connections until the delay is over', async () => {
  const config = mkdtempSync(join(tmpdir(), 'gatehouse-delay-'))
  onTestFinished(() => rmSync(config, { recursive: true, force: true }))
  writeFileSync(join(config, 'mechanism.yaml'), tokenMechanism)
  const gateway = await startGatewayProcess({ config, args: ['--shutdown-delay', String(delaySeconds)] })
  onTestFinished(async () => void (await gateway.stop()))
  const ended = once(gateway.process, 'exit')
  const started = performance.now()
  gateway.process.kill('SIGTERM')
  await until(async () => (await fetch(`${gateway.url}/ready`)).status === 503, 30_000)
  // Each on a connection of its own, as those of new clients.
  for (const path of ['/check_alive', '/nothing']) {
    const { status } = await fetch(`${gateway.url}${path}`, { headers: { connection: 'close' } })
    expect(status).toBe(path === '/nothing' ? 404 : 200)
  }
  expect(await ended).toEqual([0, null])
  expect(performance.now() - started).toBeGreaterThanOrEqual(delaySeconds * 1000)
  expect(gateway.output()).toContain(`Shutting down: not ready from now on, serving for another ${delaySeconds} s\n`)
})
