import { catalog } from '#catalog/catalog.ts'
import { loadConfiguration } from '#config/load.ts'
import { formatIssue } from '#config/located-issue.ts'
import type { Catalog } from '#sdk/catalog.ts'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo } from '#server/commands/commands.ts'

const usage = `Usage: gatehouse check --config DIR [OPTIONS]

  --config DIR    the folder of YAML
  --secrets DIR   files for secretParams, <secretName>/<key> (secrets/ of the configuration)
  --strict        warnings count as errors

Prints every problem as file:line:col: path: message, and nothing when there is none. Exits 1 when there is an error.`

const options = {
  config: { type: 'string' },
  secrets: { type: 'string' },
  strict: { type: 'boolean' },
} as const

/**
 * Prints every problem of a configuration folder as `file:line:col: path: message`, and nothing when there is none.
 * Exit code 0 in order, 1 with an error (with `--strict` also a warning), 2 wrong usage.
 */
export async function checkCommand(args: string[], io: CommandIo): Promise<number> {
  const read = readArguments(args, { usage, options, positionals: 0 }, io)
  if ('exit' in read) return read.exit
  const { config, secrets, strict } = read.values
  if (config === undefined) {
    io.stderr('gatehouse: --config is required')
    io.stderr(usage)
    return 2
  }
  return checkFolder(config, catalog, { ...(secrets === undefined ? {} : { secretsFolder: secrets }), strict }, io)
}

/** The check itself, on any catalog. */
export async function checkFolder(
  folder: string,
  modules: Catalog,
  { strict, secretsFolder }: { strict?: boolean | undefined; secretsFolder?: string },
  io: CommandIo,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<number> {
  const { issues } = await loadConfiguration({
    folder,
    catalog: modules,
    environment,
    strictSecrets: false,
    ...(secretsFolder === undefined ? {} : { secretsFolder }),
  })
  for (const issue of issues) io.stdout(formatIssue(issue))
  return issues.some(({ level }) => level === 'error' || strict === true) ? 1 : 0
}
