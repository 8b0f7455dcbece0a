import { setTimeout as delay } from 'node:timers/promises'
import { sidecarScript } from '#features/sts/injector/injector.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { findShell, type Shell, startSidecar } from '#testing/sts/sidecar-process.ts'
import { startTokenEndpoint, tokenLike } from '#testing/sts/token-endpoint.ts'

export interface SidecarFigures {
  readonly shell: string
  /** At rest, with the tokens of two endpoints. */
  readonly residentMegabytes: number
}

const restMillis = 500
const turns = 5

/** The injected sidecar in each installed shell, between two refreshes. */
export async function measureSidecar(): Promise<readonly SidecarFigures[]> {
  const figures: SidecarFigures[] = []
  for (const name of ['dash', 'busybox'] as const) {
    const shell = findShell(name)
    if (shell !== undefined) figures.push(await measureShell(shell))
  }
  return figures
}

async function measureShell(shell: Shell): Promise<SidecarFigures> {
  const exp = Math.floor(Date.now() / 1000) + 900
  const server = await startTokenEndpoint(({ path }) => ({
    headers: { 'refresh-after': '600' },
    body: tokenLike({ iss: 'https://issuer.example.com', aud: path.slice(1), exp }),
  }))
  const targets = Object.fromEntries(
    ['aws', 'vault'].map((aud) => [aud, { url: `${server.url}/${aud}`, audience: aud }]),
  )
  const sidecar = startSidecar({ shell, script: sidecarScript, targets })
  try {
    await until(async () => (await sidecar.probe()).ready, 20_000)
    const seen: number[] = []
    for (let turn = 0; turn < turns; turn++) {
      await delay(restMillis)
      seen.push(sidecar.memory())
    }
    return { shell: shell.name, residentMegabytes: Math.max(...seen) / 1e6 }
  } finally {
    sidecar.destroy()
    await sidecar.ended
    await server.close()
  }
}
