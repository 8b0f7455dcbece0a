import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DebianPostgres, postgresPrograms, startDebianPostgres } from '#testing/databases/debian-postgres.ts'
import { runSql } from '#testing/databases/postgres.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { missingPart } from '#testing/run/missing-part.ts'

const config = 'examples/call-workflow'
const program = process.env['GATEHOUSE_PROGRAM'] ?? 'bin/gatehouse'

if (postgresPrograms === undefined) missingPart("Debian's PostgreSQL", 'the package postgresql is not installed')

/** Runs as users run it: a process of its own beside the gateway. */
const gatehouse = (...args: string[]) => promisify(execFile)(program, args)

/** The commands of the guide below a heading, in order. */
function guideCommands(heading: string): string[] {
  const guide = readFileSync('docs/guides/backup-and-restore.md', 'utf8')
  const section = guide.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? ''
  return Array.from(section.matchAll(/^```sh\n([\s\S]*?)^```$/gm), ([, commands = '']) => commands)
}

/** Callers that create users until they are stopped, or the gateway is killed. */
class Load {
  /** Users whose creation was acknowledged, in that order. */
  readonly acknowledged: string[] = []
  readonly #callers: Promise<void>[]
  #isStopped = false

  constructor(gateway: GatewayProcess, token: string, callers = 4) {
    this.#callers = Array.from({ length: callers }, async (_, caller) => {
      for (let i = 0; !this.#isStopped; i++) {
        const user = `user-${caller}-${i}`
        const status = await onboard(gateway, token, user).catch(() => undefined)
        if (status === 200) this.acknowledged.push(user)
      }
    })
  }

  async reach(count: number): Promise<void> {
    await until(async () => this.acknowledged.length >= count, 60_000)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#callers)
  }
}

async function onboard(gateway: GatewayProcess, token: string, uid: string): Promise<number> {
  const response = await fetch(`${gateway.url}/call-workflow`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'onboard',
      uidAttributeName: 'uid',
      user: { attributes: [{ name: 'uid', values: [uid] }] },
      requestParams: { team: 'blue' },
    }),
  })
  await response.arrayBuffer()
  return response.status
}

const callerToken = (gateway: GatewayProcess): Promise<string> =>
  gateway.token('--subject', 'svc', '--ttl', '600', '--claim', 'role=workflow-caller')

async function kill({ process: child }: GatewayProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

interface Installation {
  readonly dataFolder: string
  readonly databaseUrl?: string
  readonly sql: (statement: string) => Promise<readonly Readonly<Record<string, unknown>>[]>
}

/** Takes a backup under load, kills the gateway, restores, and checks what the restored gateway has. */
async function story(
  original: Installation,
  restored: Installation,
  backup: () => Promise<unknown>,
  restore: () => Promise<unknown>,
): Promise<void> {
  const start = ({ dataFolder, databaseUrl }: Installation): Promise<GatewayProcess> =>
    startGatewayProcess({
      config,
      dataFolder,
      args: databaseUrl === undefined ? [] : ['--database', databaseUrl],
    })
  const gateway = await start(original)
  const load = new Load(gateway, await callerToken(gateway))
  let before: readonly string[]
  try {
    await load.reach(40)
    before = [...load.acknowledged]
    await backup()
    await load.reach(load.acknowledged.length + 20)
  } finally {
    await kill(gateway)
    await load.stop()
  }
  await restore()
  const again = await start(restored)
  try {
    const users = new Set((await restored.sql('select key from entries')).map(({ key }) => key))
    expect(before.filter((user) => !users.has(user))).toEqual([])
    // The backup is of one time: the last acknowledged users came after it.
    expect(load.acknowledged.slice(-4).filter((user) => users.has(user))).toEqual([])
    const place = ['--data', restored.dataFolder]
    if (restored.databaseUrl !== undefined) place.push('--database', restored.databaseUrl)
    const verified = await runCommand(['audit', 'verify', ...place])
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('all unchanged') })
    const audited = new Set((await restored.sql('select subject from audit')).map(({ subject }) => subject))
    expect(before.filter((user) => !audited.has(user))).toEqual([])
    expect(await onboard(again, await callerToken(again), 'after-the-restore')).toBe(200)
  } finally {
    await again.stop()
  }
}

describe('a backup under load', () => {
  let folder = ''
  let server: DebianPostgres | undefined
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-backup-story-'))
    if (postgresPrograms !== undefined) server = await startDebianPostgres(postgresPrograms)
  })
  afterAll(async () => {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('SQLite: what was acknowledged before it is there after a restore', async () => {
    const place = (name: string): Installation => {
      const dataFolder = join(folder, name)
      return {
        dataFolder,
        sql: async (statement) => {
          const database = new DatabaseSync(join(dataFolder, 'gatehouse.db'), { readOnly: true })
          try {
            return database.prepare(statement).all()
          } finally {
            database.close()
          }
        },
      }
    }
    const [original, restored, file] = [place('original'), place('restored'), join(folder, 'backup.db')]
    await story(
      original,
      restored,
      async () => {
        const { stdout } = await gatehouse('backup', file, '--data', original.dataFolder, '--keys')
        expect(stdout).toMatch(/all unchanged/)
      },
      () => gatehouse('restore', file, '--data', restored.dataFolder),
    )
  })

  test.skipIf(postgresPrograms === undefined)(
    'PostgreSQL: the commands of the guide keep what was acknowledged before them',
    async () => {
      const place = async (name: string): Promise<Installation> => {
        const databaseUrl = await server?.create(name)
        if (databaseUrl === undefined) throw new Error('there is no server')
        return { dataFolder: join(folder, name), databaseUrl, sql: (statement) => runSql(databaseUrl, statement) }
      }
      const [original, restored] = [await place('original_pg'), await place('restored_pg')]
      /** In the folder of the story, as the guide has them. */
      const run = async ([commands]: readonly string[], { databaseUrl = '', dataFolder }: Installation) => {
        const path = `${postgresPrograms}:${dirname(resolve(program))}:${process.env['PATH']}`
        const env = { ...process.env, PATH: path, GATEHOUSE_DATABASE: databaseUrl }
        const local = commands?.replace('gatehouse restore', `gatehouse restore --data ${dataFolder}`) ?? 'false'
        return await promisify(execFile)('bash', ['-euc', local], { cwd: folder, env })
      }
      await story(
        original,
        restored,
        () => run(guideCommands('PostgreSQL'), original),
        async () => {
          cpSync(join(original.dataFolder, 'keys'), join(restored.dataFolder, 'keys'), { recursive: true })
          const { stdout } = await run(guideCommands('Restoring PostgreSQL'), restored)
          expect(stdout).toContain('Finished: start the gateways')
        },
      )
    },
  )
})
