import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import type { ScimClient } from '#testing/scim/scim-client.ts'
import { PublicScimClient, publicHost } from '#testing/scim/scim-init.ts'
import type { StoryOptions } from '#testing/scim/scim-story.ts'

/** A system that `gatehouse init` writes a gateway for. */
export interface InitSystem {
  readonly name: string
  /** Whether its requirements are on this machine; true if absent. */
  readonly isThere?: () => boolean
  /** Everything if absent. */
  readonly can?: StoryOptions
  open(): Promise<OpenSystem>
}

interface OpenSystem {
  /** Options of `init`, without those of the domain. */
  readonly args: readonly string[]
  /** The password or token of the target. */
  readonly secret?: string
  /** What an operator does with the new folder before the gateway starts. */
  prepare?(folder: string): Promise<void>
  close?(): Promise<void>
}

/** Describes a suite for a gateway that `gatehouse init` wrote for the system, with the profile of a client. */
export function describeInit(
  system: InitSystem,
  suite: (client: (profile: string) => () => ScimClient, can?: StoryOptions) => void,
): void {
  describe.skipIf(system.isThere?.() === false)(`gatehouse init, ${system.name}`, () => {
    const around = mkdtempSync(join(tmpdir(), 'gatehouse-init-story-'))
    const folder = join(around, 'gateway')
    let [token, gateway, opened]: [string, GatewayProcess | undefined, OpenSystem | undefined] = [
      '',
      undefined,
      undefined,
    ]
    beforeAll(async () => {
      opened = await system.open()
      const secret = join(around, 'secret')
      if (opened.secret !== undefined) writeFileSync(secret, opened.secret)
      const secretArgs = opened.secret === undefined ? [] : ['--target-secret-file', secret]
      const printed = await commandOutput('init', folder, '--domain', publicHost, ...opened.args, ...secretArgs)
      token = /\b[0-9a-f]{64}\b/.exec(printed)?.[0] ?? ''
      await opened.prepare?.(folder)
      const environment = Array.from(
        readFileSync(join(folder, 'gatehouse.env'), 'utf8').matchAll(/^([A-Z_]+)='?([^'\n]*)'?$/gm),
        ([, name = '', value = '']) => [name, value] as const,
      )
      addProfiles(folder)
      gateway = await startGatewayProcess({
        config: join(folder, 'config'),
        dataFolder: join(folder, 'data'),
        args: ['--trusted-proxy', '127.0.0.1'],
        environment: { ...Object.fromEntries(environment), GATEHOUSE_URL: `https://${publicHost}` },
      })
    }, 120_000)
    afterAll(async () => {
      await gateway?.stop()
      await opened?.close?.()
      if (existsSync(around)) rmSync(around, { recursive: true, force: true })
    })
    suite(
      (profile) => () => {
        const base = `https://${publicHost}/scim/v2${profile === 'tolerant' ? '' : `-${profile}`}`
        return new PublicScimClient(base, token, () => gateway?.url ?? '')
      },
      system.can,
    )
  })
}

/** The same gateway at another path for each profile, since `init` writes that of one client. */
function addProfiles(folder: string): void {
  const file = join(folder, 'config/scim.yaml')
  const text = readFileSync(file, 'utf8')
  const start = text.indexOf('    - hosts:')
  const url = text.slice(start)
  const profiles = ['okta', 'entra', 'sailpoint', 'onelogin'].map((profile) =>
    url
      .replace('uri: /scim/v2', `uri: /scim/v2-${profile}`)
      .replace('lookupTarget:', `client: ${profile}\n            lookupTarget:`),
  )
  writeFileSync(file, text.slice(0, start) + [url, ...profiles].join(''))
}
