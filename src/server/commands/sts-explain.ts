import { readFileSync } from 'node:fs'
import process from 'node:process'
import { formatIssue } from '#config/located-issue.ts'
import { Scope } from '#kernel/scope.ts'
import { suggestion } from '#kernel/suggest.ts'
import { fileProblem, readArguments } from '#server/commands/arguments.ts'
import type { CommandIo } from '#server/commands/commands.ts'
import { openRuntime } from '#server/commands/explain.ts'
import { loadOnce } from '#server/commands/load-once.ts'
import { terminalLine } from '#server/commands/terminal-line.ts'
import { describeWorkload, type ExplainedWorkload, explainToken } from '#server/explain-token.ts'
import { withoutClusters } from '#server/without-clusters.ts'

const usage = `Usage: gatehouse sts explain --config DIR [OPTIONS] ENDPOINT

  --config DIR      the folder of YAML, or kubernetes:NAMESPACE
  --token FILE      the workload's token, verified and reviewed as the endpoint does it; - reads it from the input
  --as NAME=VALUE   instead of a token, the attributes of the workload: namespace=, saname=, cluster=, pod-name= ...; may repeat;
                    of an OpenID Connect issuer: issuer=, sub= and its claims. No cluster is contacted.
  --data DIR        the embedded database, for rules that ask the directory
  --database URL    postgres://..., likewise; also GATEHOUSE_DATABASE
  --secrets DIR     files for secretParams (secrets/ of the configuration)

Signs nothing. Exits 0 when a token would be issued, 1 when it would be refused.`

const options = {
  config: { type: 'string' },
  token: { type: 'string' },
  as: { type: 'string', multiple: true },
  data: { type: 'string' },
  database: { type: 'string' },
  secrets: { type: 'string' },
} as const

const widest = 2000

/** `gatehouse sts explain`: what a token endpoint would do for a workload, and why. */
export async function stsExplainCommand(args: string[], io: CommandIo): Promise<number> {
  const read = readArguments(args, { usage, options, positionals: 1, names: ['ENDPOINT'] }, io)
  if ('exit' in read) return read.exit
  const { values, positionals } = read
  const [name = ''] = positionals
  const wrong = (message: string): number => {
    io.stderr(`gatehouse sts explain: ${message}`)
    return 2
  }
  if (values.config === undefined) return wrong('--config is required')
  if (values.token !== undefined && values.as !== undefined) return wrong('--token and --as exclude each other')
  if (values.token === undefined && values.as === undefined) {
    return wrong('--token FILE or --as NAME=VALUE is required, such as --as namespace=shop --as saname=cart')
  }
  let explained: ExplainedWorkload
  try {
    explained = readWorkload(values.token, values.as ?? [])
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error))
  }
  const scope = new Scope()
  try {
    const { loaded, secrets } = await loadOnce({ config: values.config, secrets: values.secrets }, false, scope)
    if (loaded.configuration === undefined) {
      for (const issue of loaded.issues) io.stderr(formatIssue(issue))
      return 1
    }
    const { stsEndpoints } = loaded.configuration
    const names = stsEndpoints.map(({ endpoint }) => endpoint.name)
    const config = stsEndpoints.find(({ endpoint }) => endpoint.name === name)
    if (config === undefined) return wrong(unknownEndpoint(name, names))
    const database = values.database ?? process.env['GATEHOUSE_DATABASE']
    const { configuration } = loaded
    const used = explained.kind === 'described' ? withoutClusters(configuration) : configuration
    if (explained.kind === 'described') {
      try {
        describeWorkload(explained.attributes, config.endpoint)
      } catch (error) {
        return wrong(`--as: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    const { tokens, rules } = await openRuntime(used, secrets, values.data, database, scope)
    if (tokens === undefined) throw new Error('there is no token service')
    const { allowed, lines } = await explainToken(tokens, rules, config, explained)
    for (const line of lines) io.stdout(terminalLine(line, widest))
    return allowed ? 0 : 1
  } catch (error) {
    io.stderr(`gatehouse sts explain: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  } finally {
    await scope.close()
  }
}

/** For people: the endpoint that they named does not exist. */
export function unknownEndpoint(name: string, known: readonly string[]): string {
  const others = known.length === 0 ? 'no token endpoints are configured' : `there are ${known.join(', ')}`
  return `no token endpoint "${name}"${suggestion(name, known)}; ${others}`
}

function readToken(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    throw new Error(`--token: ${fileProblem(file, error)}`)
  }
}

function readWorkload(tokenFile: string | undefined, given: readonly string[]): ExplainedWorkload {
  if (tokenFile !== undefined) {
    return { kind: 'token', token: readToken(tokenFile) }
  }
  const attributes = new Map<string, string[]>()
  for (const pair of given) {
    const equals = pair.indexOf('=')
    if (equals < 1) throw new Error(`--as takes NAME=VALUE, not "${pair}"`)
    const name = pair.slice(0, equals)
    attributes.set(name, [...(attributes.get(name) ?? []), pair.slice(equals + 1)])
  }
  return { kind: 'described', attributes }
}
