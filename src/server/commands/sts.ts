import { readFileSync, statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import { ConfigDocument, FixedPlace } from '#config/config-document.ts'
import { readYaml } from '#config/locate.ts'
import { formatIssue, locateIssues } from '#config/located-issue.ts'
import { readSchema } from '#config/schema-issues.ts'
import type { Workload } from '#engine/sts/workload.ts'
import { Issues } from '#kernel/issues.ts'
import { Scope } from '#kernel/scope.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { StsEndpointConfig } from '#sdk/module/configuration.ts'
import type { CommandIo, RunCommand } from '#server/commands/command-line.ts'
import { fileProblem, messageOf, readArguments, terminalLine, wrongUsage } from '#server/commands/command-line.ts'
import {
  configUsage,
  databaseUsage,
  directoryUsage,
  loadOnce,
  openRuntime,
  secretsUsage,
} from '#server/commands/installation.ts'
import { runKeyAction } from '#server/commands/keys.ts'
import {
  decideToken,
  describeWorkload,
  type ExplainedWorkload,
  explainToken,
  type TokenDecision,
  verdictText,
  withoutClusters,
} from '#server/explain-token.ts'

const usage = `Explain, test and publish token endpoints.

Usage:
  gatehouse sts explain --config SOURCE [options] ENDPOINT
  gatehouse sts test --config SOURCE [options] FILE
  gatehouse sts publish --config SOURCE [--endpoint NAME] [options]

Actions:
  explain  Show whether a workload would get a token, and why; see "gatehouse sts explain --help"
  test     Run policy tests; see "gatehouse sts test --help"
  publish  Publish the documents of endpoints now and read them back. Exit code 1 if that fails

Options of publish:
${configUsage}
${databaseUsage}
${secretsUsage}
  --endpoint NAME          Only this endpoint
  --json                   Print JSON`

const explainUsage = `Show whether a workload would get a token of an endpoint, and why. Nothing is signed or audited.

Usage:
  gatehouse sts explain --config SOURCE --token FILE [options] ENDPOINT
  gatehouse sts explain --config SOURCE --as NAME=VALUE ... [options] ENDPOINT

Options:
${configUsage}
  --token FILE             The token of the workload, which is verified and reviewed; - reads standard input
  --as NAME=VALUE          Attribute of the workload instead, without contacting a cluster; can be repeated:
                           namespace, saname, cluster, pod-name, ...; for an OpenID Connect issuer: issuer, sub and claims
${directoryUsage}
${secretsUsage}

Exit code: 0 if a token would be issued, 1 if it would be refused.`

const testUsage = `Check that token endpoints decide as a file expects. No cluster is contacted and nothing is signed.

Usage:
  gatehouse sts test --config SOURCE [options] FILE

Options:
${configUsage}
${directoryUsage}
${secretsUsage}

FILE lists workloads that get a token, and workloads that do not:

  tests:
    - endpoint: aws
      as: { namespace: shop, saname: cart }
      allowed: true
      subject: k8s:shop:cart
      claims: { namespace: shop }

Exit code: 0 if all tests pass, 1 if a test fails or the file is invalid.`

const testOptions = {
  config: { type: 'string' },
  data: { type: 'string' },
  database: { type: 'string' },
  secrets: { type: 'string' },
} as const
const explainOptions = { ...testOptions, token: { type: 'string' }, as: { type: 'string', multiple: true } } as const

/** `publish` is the same as `gatehouse keys publish`. */
export const stsCommand: RunCommand = (args, io) => {
  if (args[0] === 'explain') return explain(args.slice(1), io)
  if (args[0] === 'test') return testPolicy(args.slice(1), io)
  return runKeyAction({ command: 'sts', names: ['publish'], known: ['explain', 'test', 'publish'], usage }, args, io)
}

const widest = 2000

async function explain(args: string[], io: CommandIo): Promise<number> {
  const read = readArguments(
    args,
    { command: 'sts explain', usage: explainUsage, options: explainOptions, positionals: 1, names: ['ENDPOINT'] },
    io,
  )
  if ('exit' in read) return read.exit
  const { values, positionals } = read
  const [name = ''] = positionals
  const wrong = (message: string): number => wrongUsage('sts explain', message, io)
  if (values.config === undefined) return wrong('--config is required')
  if (values.token !== undefined && values.as !== undefined) return wrong('--token and --as cannot be combined')
  if (values.token === undefined && values.as === undefined) {
    return wrong('--token FILE or --as NAME=VALUE is required, such as --as namespace=shop --as saname=cart')
  }
  let explained: ExplainedWorkload
  try {
    explained = readWorkload(values.token, values.as ?? [])
  } catch (error) {
    return wrong(messageOf(error))
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
    const { configuration } = loaded
    const used = explained.kind === 'described' ? withoutClusters(configuration) : configuration
    if (explained.kind === 'described') {
      try {
        describeWorkload(explained.attributes, config.endpoint)
      } catch (error) {
        return wrong(`--as: ${messageOf(error)}`)
      }
    }
    const { tokens, rules } = await openRuntime(used, secrets, values, scope)
    if (tokens === undefined) throw new Error('there is no token service')
    const { allowed, lines } = await explainToken(tokens, rules, config, explained)
    for (const line of lines) io.stdout(terminalLine(line, widest))
    return allowed ? 0 : 1
  } catch (error) {
    io.stderr(`gatehouse sts explain: ${messageOf(error)}`)
    return 1
  } finally {
    await scope.close()
  }
}

function unknownEndpoint(name: string, known: readonly string[]): string {
  const others = known.length === 0 ? 'no token endpoints are configured' : `the endpoints are ${known.join(', ')}`
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

const mostBytes = 4 << 20

const testSchema = z.strictObject({
  name: z.string().min(1).max(200).optional(),
  endpoint: z.string().min(1),
  as: z.record(z.string().min(1), z.union([z.string(), z.array(z.string()).max(100)])),
  allowed: z.boolean(),
  /** Of the token; both need `allowed: true`. */
  subject: z.string().min(1).optional(),
  claims: z.record(z.string().min(1), z.json()).optional(),
})
const fileSchema = z.strictObject({ tests: z.array(testSchema).min(1).max(10_000) })

type PolicyTestSpec = z.infer<typeof testSchema>

interface PolicyTest {
  readonly spec: PolicyTestSpec
  readonly at: string
  readonly config: StsEndpointConfig
  readonly workload: Workload
}

async function testPolicy(args: string[], io: CommandIo): Promise<number> {
  const read = readArguments(
    args,
    { command: 'sts test', usage: testUsage, options: testOptions, positionals: 1, names: ['FILE'] },
    io,
  )
  if ('exit' in read) return read.exit
  const { values, positionals } = read
  const [file = ''] = positionals
  if (values.config === undefined) return wrongUsage('sts test', '--config is required', io)
  const scope = new Scope()
  try {
    const { loaded, secrets } = await loadOnce({ config: values.config, secrets: values.secrets }, false, scope)
    if (loaded.configuration === undefined) {
      for (const issue of loaded.issues) io.stderr(formatIssue(issue))
      return 1
    }
    const issues = new Issues()
    const tests = readTests(file, loaded.configuration.stsEndpoints, issues)
    if (!issues.ok) {
      for (const issue of locateIssues(issues.list)) io.stderr(formatIssue(issue))
      return 1
    }
    const configuration = withoutClusters(loaded.configuration)
    const { tokens, rules } = await openRuntime(configuration, secrets, values, scope)
    if (tokens === undefined) throw new Error('there is no token service')
    let failed = 0
    for (const test of tests) {
      const decision = await decideToken(tokens, rules, test.config, test.workload)
      const problems = problemsOf(test.spec, decision)
      if (problems.length > 0) failed++
      io.stdout(terminalLine(`${problems.length === 0 ? 'ok  ' : 'FAIL'}  ${test.at}  ${titleOf(test)}`, widest))
      for (const problem of problems) io.stdout(terminalLine(`      ${problem}`, widest))
    }
    io.stdout(`${tests.length} test${tests.length === 1 ? '' : 's'}: ${tests.length - failed} passed, ${failed} failed`)
    return failed === 0 ? 0 : 1
  } catch (error) {
    io.stderr(`gatehouse sts test: ${messageOf(error)}`)
    return 1
  } finally {
    await scope.close()
  }
}

function readTestFile(file: string): string {
  let size: number
  try {
    size = statSync(file).size
    if (size <= mostBytes) return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(fileProblem(file, error))
  }
  throw new Error(`${file} is larger than ${mostBytes} bytes`)
}

function readTests(file: string, endpoints: readonly StsEndpointConfig[], issues: Issues): PolicyTest[] {
  const { documents, problems } = readYaml(readTestFile(file))
  for (const { position, message } of [...problems, ...documents.flatMap((each) => each.problems)]) {
    issues.for(new FixedPlace(file, position)).error([], message)
  }
  if (documents.length === 0 && issues.ok) issues.for(new FixedPlace(file)).error([], 'there are no tests')
  if (!issues.ok) return []
  return documents.flatMap((yaml) => {
    const document = new ConfigDocument(file, yaml)
    const filed = issues.for(document)
    const value = yaml.toValue({ text: (text) => text, report: (path, message) => filed.error(path, message) })
    const spec = readSchema(fileSchema, value, [], filed)
    return (spec?.tests ?? []).flatMap((one, i) => readTest(one, document, ['tests', i], endpoints, filed))
  })
}

function readTest(
  spec: PolicyTestSpec,
  document: ConfigDocument,
  path: readonly (string | number)[],
  endpoints: readonly StsEndpointConfig[],
  issues: Issues,
): PolicyTest[] {
  if (!spec.allowed) {
    for (const name of ['subject', 'claims'] as const) {
      if (spec[name] !== undefined)
        issues.error([...path, name], 'is of a token, and allowed: false means that there is none')
    }
  }
  const config = endpoints.find(({ endpoint }) => endpoint.name === spec.endpoint)
  if (config === undefined) {
    const names = endpoints.map(({ endpoint }) => endpoint.name)
    issues.error([...path, 'endpoint'], unknownEndpoint(spec.endpoint, names))
    return []
  }
  const given = new Map(
    Object.entries(spec.as).map(([name, value]) => [name, typeof value === 'string' ? [value] : value]),
  )
  try {
    return [{ spec, at: document.at(path), config, workload: describeWorkload(given, config.endpoint) }]
  } catch (error) {
    issues.error([...path, 'as'], messageOf(error))
    return []
  }
}

const titleOf = ({ spec, workload }: PolicyTest): string =>
  spec.name ?? `${workload.username} ${spec.allowed ? 'gets a token' : 'gets no token'} of ${spec.endpoint}`

/** The differences; empty if there are none. */
function problemsOf({ allowed, subject, claims = {} }: PolicyTestSpec, decision: TokenDecision): string[] {
  const { content, refusal, verdicts } = decision
  const said = verdicts.map((verdict) => `rule ${verdictText(verdict)}`)
  if (content === undefined) {
    if (!allowed) return []
    const why = refusal === undefined ? 'no rule passes' : refusal.message
    return [`expected a token, got none: ${why}`, ...said]
  }
  if (!allowed) return [`expected no token, got one for ${content.subject}`, ...said]
  const problems: string[] = []
  if (subject !== undefined && subject !== content.subject) {
    problems.push(`subject: expected ${JSON.stringify(subject)}, got ${JSON.stringify(content.subject)}`)
  }
  for (const [name, expected] of Object.entries(claims)) {
    const got = content.claims.get(name)
    if (isDeepStrictEqual(got, expected)) continue
    problems.push(`claim ${name}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got) ?? 'none'}`)
  }
  return problems
}
