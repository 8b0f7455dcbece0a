import { catalog } from '#catalog/catalog.ts'
import { formatIssue } from '#config/located-issue.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { Catalog } from '#sdk/catalog.ts'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo } from '#server/commands/commands.ts'
import { openConfigurationSource } from '#server/open-configuration-source.ts'

const usage = `Usage: gatehouse check --config SOURCE [OPTIONS]

  --config SOURCE the folder of YAML, or kubernetes:NAMESPACE[/CONFIGMAP] for its objects
  --kubeconfig F  how that cluster is reached (KUBECONFIG, else from within)
  --secrets DIR   files for secretParams, <secretName>/<key> (secrets/ of the configuration)
  --strict        warnings count as errors

Prints every problem as file:line:col: path: message, and nothing when there is none. Exits 1 when there is an error.`

const options = {
  config: { type: 'string' },
  kubeconfig: { type: 'string' },
  secrets: { type: 'string' },
  strict: { type: 'boolean' },
} as const

/**
 * Prints every problem of a configuration as `file:line:col: path: message`, and nothing when there is none.
 * Exit code 0 in order, 1 with an error (with `--strict` also a warning), 2 wrong usage.
 */
export async function checkCommand(args: string[], io: CommandIo): Promise<number> {
  const read = readArguments(args, { usage, options, positionals: 0 }, io)
  if ('exit' in read) return read.exit
  const { config, kubeconfig, secrets, strict } = read.values
  if (config === undefined) {
    io.stderr('gatehouse: --config is required')
    io.stderr(usage)
    return 2
  }
  try {
    return await checkConfiguration(config, catalog, { secretsFolder: secrets, strict, kubeconfig }, io)
  } catch (error) {
    io.stderr(`gatehouse check: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
}

export interface CheckOptions {
  readonly strict?: boolean | undefined
  readonly secretsFolder?: string | undefined
  readonly kubeconfig?: string | undefined
}

/** The check itself, on any catalog. Throws when the configuration cannot be asked for. */
export async function checkConfiguration(
  config: string,
  modules: Catalog,
  { strict, secretsFolder, kubeconfig }: CheckOptions,
  io: CommandIo,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<number> {
  const places = { config, secretsFolder, kubeconfig }
  const options = { ...places, environment, catalog: modules, strictSecrets: false, log: silentLogger }
  const source = await openConfigurationSource(options)
  try {
    const { issues } = await source.load()
    for (const issue of issues) io.stdout(formatIssue(issue))
    return issues.some(({ level }) => level === 'error' || strict === true) ? 1 : 0
  } finally {
    await source.close()
  }
}
