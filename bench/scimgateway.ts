import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import type { Peer } from './peer.ts'
import { cpuSecondsOf } from './process-figures.ts'

export const scimgatewayInstall = `mkdir -p ~/scimgateway && npm install --prefix ~/scimgateway scimgateway bun
  BENCH_SCIMGATEWAY=~/scimgateway npm run bench -- peers`

const token = 'bench'

/**
 * scimgateway from the folder in BENCH_SCIMGATEWAY, with its store in memory and its log off. By Bun where that is
 * installed there or on the path, as its start script does, else by Node.js. Undefined if it is not installed.
 */
export async function startScimgateway(folder: string): Promise<(Peer & { readonly token: string }) | undefined> {
  const modules = resolve(process.env['BENCH_SCIMGATEWAY'] ?? '', 'node_modules')
  const installed = join(modules, 'scimgateway')
  if (process.env['BENCH_SCIMGATEWAY'] === undefined || !existsSync(join(installed, 'lib/plugin-loki.ts'))) return
  const port = await freePort()
  const place = join(folder, 'scimgateway')
  for (const name of ['lib', 'config']) mkdirSync(join(place, name), { recursive: true })
  cpSync(join(installed, 'lib/plugin-loki.ts'), join(place, 'lib/plugin-loki.ts'))
  symlinkSync(modules, join(place, 'node_modules'))
  writeFileSync(join(place, 'package.json'), '{"type": "module"}')
  writeFileSync(join(place, 'index.ts'), `import './lib/plugin-loki.ts'\n`)
  const config = JSON.parse(readFileSync(join(installed, 'config/plugin-loki.json'), 'utf8'))
  config.scimgateway.port = port
  config.scimgateway.localhostonly = true
  config.scimgateway.log = { loglevel: { file: 'off', console: 'off' } }
  config.scimgateway.auth = { bearerToken: [{ token, readOnly: false, baseEntities: [] }] }
  writeFileSync(join(place, 'config/plugin-loki.json'), JSON.stringify(config))
  const bun = [join(modules, '.bin/bun'), 'bun'].find((name) => spawnSync(name, ['--version']).error === undefined)
  const [program, args] = bun === undefined ? [process.execPath, ['--import=tsx', 'index.ts']] : [bun, ['index.ts']]
  const child = spawn(program, args, { cwd: place, stdio: 'ignore' })
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`scimgateway ended with ${child.exitCode}; run it in ${place}`)
      const answer = await fetch(`http://127.0.0.1:${port}/Users?count=1`, {
        headers: { authorization: `Bearer ${token}` },
      }).catch(() => undefined)
      return answer?.ok === true
    }, 60_000)
  } catch (error) {
    await stop()
    throw error
  }
  const name = `scimgateway on ${bun === undefined ? 'Node.js' : 'Bun'}`
  return { name, port, token, cpuSeconds: () => cpuSecondsOf(child.pid), stop }
}
