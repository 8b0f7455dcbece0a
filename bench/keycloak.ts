import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import type { Peer } from './peer.ts'
import { treeCpuSecondsOf } from './process-figures.ts'

export const keycloakInstall = `unpack org.keycloak:keycloak-quarkus-dist:26.4.0:zip of Maven Central (needs Java)
  BENCH_KEYCLOAK=~/keycloak-26.4.0 npm run bench -- peers`

const administrator = { username: 'bench', password: 'bench' }
const client = { id: 'bench', secret: 'bench-secret' }
const tokenPath = '/realms/master/protocol/openid-connect/token'

export interface Keycloak extends Peer {
  /** A request for a token by client credentials, which Keycloak signs with RS256. */
  readonly request: string
}

/** Keycloak from the folder in BENCH_KEYCLOAK, in its development mode, with its database in memory. Undefined if it is not installed. */
export async function startKeycloak(folder: string): Promise<Keycloak | undefined> {
  const home = process.env['BENCH_KEYCLOAK']
  if (home === undefined || !existsSync(resolve(home, 'bin/kc.sh'))) return undefined
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const data = join(folder, 'keycloak')
  mkdirSync(data)
  const args = ['start-dev', `--http-port=${port}`, '--http-host=127.0.0.1', '--db=dev-mem', '--log-level=error']
  // A process group of its own, since a script starts Java.
  const child = spawn(resolve(home, 'bin/kc.sh'), args, {
    cwd: data,
    detached: true,
    stdio: 'ignore',
    env: {
      ...process.env,
      KC_BOOTSTRAP_ADMIN_USERNAME: administrator.username,
      KC_BOOTSTRAP_ADMIN_PASSWORD: administrator.password,
    },
  })
  const stop = async (): Promise<void> => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    process.kill(-child.pid, 'SIGKILL')
    await ended
  }
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`Keycloak ended with ${child.exitCode}`)
      return (await fetch(`${url}/realms/master`).catch(() => undefined))?.ok === true
    }, 300_000)
    await createClient(url)
  } catch (error) {
    await stop()
    throw error
  }
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client.id,
    client_secret: client.secret,
  }).toString()
  const head = `POST ${tokenPath} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/x-www-form-urlencoded`
  const request = `${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  return { name: 'Keycloak', port, request, cpuSeconds: () => treeCpuSecondsOf(child.pid), stop }
}

async function createClient(url: string): Promise<void> {
  const form = new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', ...administrator })
  const answer = await fetch(url + tokenPath, { method: 'POST', body: form })
  if (!answer.ok) throw new Error(`Keycloak: ${answer.status} ${await answer.text()}`)
  const { access_token } = (await answer.json()) as { access_token: string }
  const created = await fetch(`${url}/admin/realms/master/clients`, {
    method: 'POST',
    headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      clientId: client.id,
      secret: client.secret,
      publicClient: false,
      serviceAccountsEnabled: true,
      standardFlowEnabled: false,
    }),
  })
  if (created.status !== 201) throw new Error(`Keycloak: ${created.status} ${await created.text()}`)
}
