import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { damageTable } from '#testing/databases/damage.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'

test('a gateway with a damaged database is not ready, and says why', async () => {
  const data = temporaryFolder()
  const config = 'examples/quickstart'
  await (await startGatewayProcess({ config, dataFolder: data })).stop()
  damageTable(join(data, 'gatehouse.db'), 'journal')
  const [port, metrics] = [await freePort(), await freePort()]
  const places = ['--config', config, '--data', data]
  const child = spawn(gatehouse, [
    'serve',
    ...places,
    ...['--listen', `127.0.0.1:${port}`, '--metrics', `127.0.0.1:${metrics}`],
  ])
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  const health = () => fetch(`http://127.0.0.1:${metrics}/health`).then((response) => response.json())
  await until(async () => (await health().catch(() => ({}))).status === 'down', 60_000)
  expect(await health()).toMatchObject({ gateway: { problem: expect.stringContaining('the database is damaged: ') } })
  expect((await fetch(`http://127.0.0.1:${port}/ready`)).status).toBe(503)
  expect((await fetch(`http://127.0.0.1:${port}/check_alive`)).status).toBe(200)
  await until(async () => output.includes('the database is damaged: stop the gateway, keep the file'), 20_000)
})
