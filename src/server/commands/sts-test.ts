import { readFileSync, statSync } from 'node:fs'
import process from 'node:process'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import { ConfigDocument, FixedPlace } from '#config/config-document.ts'
import { readYaml } from '#config/locate.ts'
import { formatIssue, locateIssues } from '#config/located-issue.ts'
import { readSchema } from '#config/schema-issues.ts'
import type { Workload } from '#engine/sts/workload.ts'
import { Issues } from '#kernel/issues.ts'
import { Scope } from '#kernel/scope.ts'
import type { StsEndpointConfig } from '#sdk/configuration.ts'
import { fileProblem, readArguments } from '#server/commands/arguments.ts'
import type { CommandIo } from '#server/commands/commands.ts'
import { openRuntime } from '#server/commands/explain.ts'
import { loadOnce } from '#server/commands/load-once.ts'
import { unknownEndpoint } from '#server/commands/sts-explain.ts'
import { terminalLine } from '#server/commands/terminal-line.ts'
import { decideToken, describeWorkload, type TokenDecision, verdictText } from '#server/explain-token.ts'
import { withoutClusters } from '#server/without-clusters.ts'

const usage = `Usage: gatehouse sts test --config DIR [OPTIONS] FILE

  --config DIR      the folder of YAML, or kubernetes:NAMESPACE
  --data DIR        the embedded database, for rules that ask the directory
  --database URL    postgres://..., likewise; also GATEHOUSE_DATABASE
  --secrets DIR     files for secretParams (secrets/ of the configuration)

FILE lists who may have tokens, and who may not:

  tests:
    - endpoint: aws
      as: { namespace: shop, saname: cart }
      allowed: true
      subject: k8s:shop:cart
      claims: { namespace: shop }

Contacts no cluster and signs nothing. Exits 0 when all tests pass, 1 when one fails or the file is invalid.`

const options = {
  config: { type: 'string' },
  data: { type: 'string' },
  database: { type: 'string' },
  secrets: { type: 'string' },
} as const

const widest = 2000
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

/** `gatehouse sts test`: whether token endpoints decide as a file expects. */
export async function stsTestCommand(args: string[], io: CommandIo): Promise<number> {
  const read = readArguments(args, { usage, options, positionals: 1, names: ['FILE'] }, io)
  if ('exit' in read) return read.exit
  const { values, positionals } = read
  const [file = ''] = positionals
  if (values.config === undefined) {
    io.stderr('gatehouse sts test: --config is required')
    return 2
  }
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
    const database = values.database ?? process.env['GATEHOUSE_DATABASE']
    const configuration = withoutClusters(loaded.configuration)
    const { tokens, rules } = await openRuntime(configuration, secrets, values.data, database, scope)
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
    io.stderr(`gatehouse sts test: ${error instanceof Error ? error.message : String(error)}`)
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
    issues.error([...path, 'as'], error instanceof Error ? error.message : String(error))
    return []
  }
}

const titleOf = ({ spec, workload }: PolicyTest): string =>
  spec.name ?? `${workload.username} ${spec.allowed ? 'gets a token' : 'gets no token'} of ${spec.endpoint}`

/** What is not as expected; empty where everything is. */
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
