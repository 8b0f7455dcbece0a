import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { formatIssue } from '#config/located-issue.ts'
import type { SecretSource } from '#config/secrets.ts'
import { createRuntime } from '#engine/runtime.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import type { Configuration } from '#sdk/configuration.ts'
import { readArguments } from '#server/commands/arguments.ts'
import { parseCaller } from '#server/commands/caller.ts'
import type { CommandIo } from '#server/commands/commands.ts'
import { loadOnce } from '#server/commands/load-once.ts'
import { closeToOthers } from '#server/commands/open-database.ts'
import { explainRequest } from '#server/explain-request.ts'
import { createServices } from '#server/services.ts'
import { openStorage } from '#storage/open.ts'

const usage = `Usage: gatehouse explain --config DIR [OPTIONS] METHOD URL

  --config DIR      the folder of YAML, or kubernetes:NAMESPACE
  --as NAME=VALUE   the caller: dn=, uid=, level= or any attribute; may repeat; anonymous without
                    (rules about names need dn=, such as --as dn=sub=idp,ou=oauth2,o=Tremolo)
  --data DIR        the embedded database, for rules that ask the directory
  --database URL    postgres://..., likewise; also GATEHOUSE_DATABASE
  --secrets DIR     files for secretParams (secrets/ of the configuration)

Exits 0 when the request would be allowed, 1 when it would be refused.`

const options = {
  config: { type: 'string' },
  as: { type: 'string', multiple: true },
  data: { type: 'string' },
  database: { type: 'string' },
  secrets: { type: 'string' },
} as const

export async function explainCommand(args: string[], io: CommandIo): Promise<number> {
  const read = readArguments(args, { usage, options, positionals: 2 }, io)
  if ('exit' in read) return read.exit
  const { values, positionals } = read
  const [method = '', address = ''] = positionals
  const wrong = (message: string): number => {
    io.stderr(`gatehouse explain: ${message}`)
    return 2
  }
  if (values.config === undefined) return wrong('--config is required')
  if (!URL.canParse(address)) return wrong(`not a URL: ${address}`)
  const scope = new Scope()
  try {
    const { loaded, secrets } = await loadOnce({ config: values.config, secrets: values.secrets }, false, scope)
    const { configuration, issues } = loaded
    if (configuration === undefined) {
      for (const issue of issues) io.stderr(formatIssue(issue))
      return 1
    }
    let caller: ReturnType<typeof parseCaller>
    try {
      caller = parseCaller(values.as ?? [], configuration.directoryRoot)
    } catch (error) {
      return wrong(error instanceof Error ? error.message : String(error))
    }
    const database = values.database ?? process.env['GATEHOUSE_DATABASE']
    const runtime = await openRuntime(configuration, secrets, values.data, database, scope)
    const explanation = await explainRequest(runtime, method.toUpperCase(), new URL(address), caller)
    for (const line of explanation.lines) io.stdout(line)
    if (explanation.deniedByName && !values.as?.some((pair) => pair.startsWith('dn='))) {
      io.stdout(`note         the caller's name was made of --as; a chain may make another: give it as --as dn=NAME`)
    }
    return explanation.allowed ? 0 : 1
  } catch (error) {
    io.stderr(`gatehouse explain: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  } finally {
    await scope.close()
  }
}

/** Without a database of its own to look into, an empty one is made for the moment and thrown away. */
export async function openRuntime(
  configuration: Configuration,
  secrets: SecretSource,
  data: string | undefined,
  url: string | undefined,
  scope: Scope,
) {
  const dataFolder = data === undefined ? mkdtempSync(join(tmpdir(), 'gatehouse-explain-')) : resolve(data)
  if (data === undefined) scope.defer(() => rmSync(dataFolder, { recursive: true, force: true }))
  else closeToOthers(dataFolder, url)
  const storage = scope.own(
    openStorage({ dataFolder, ...(url === undefined ? {} : { url }), clock: systemClock, log: silentLogger }),
  )
  await storage.ready()
  const parts = {
    storage,
    configFolder: configuration.folder,
    dataFolder,
    secrets,
    clock: systemClock,
    log: silentLogger,
    environment: process.env,
  }
  const runtime = await createRuntime(configuration, createServices(parts))
  return scope.own(runtime)
}
