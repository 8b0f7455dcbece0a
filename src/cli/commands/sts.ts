import { readFileSync, statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import {
  type CommandOutput,
  defineCommand,
  fileProblem,
  messageOf,
  readPairs,
  terminalLine,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { openRuntime, withConfiguration } from '#cli/command-line/installation.ts'
import { configOption, directoryOptions, outputOption, secretsOption } from '#cli/command-line/options.ts'
import type { StsEndpointConfig } from '#config/configuration/configuration.ts'
import { ConfigDocument, FixedPlace } from '#config/context/config-document.ts'
import { readYaml } from '#config/context/locate.ts'
import { formatIssue, locateIssues } from '#config/context/located-issue.ts'
import { readSchema } from '#config/context/schema-issues.ts'
import { endpointKind } from '#config/load/set-aside.ts'
import { givenGrants } from '#features/sts/grants/given-grants.ts'
import type { Workload } from '#features/sts/service/workload.ts'
import { Issues } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import { detailLines } from '#server/explain/explanation.ts'
import { verdictText } from '#server/explain/request.ts'
import {
  decideToken,
  describeWorkload,
  type ExplainedWorkload,
  explainToken,
  grantText,
  refusedGrants,
  type TokenDecision,
  withoutClusters,
} from '#server/explain/token.ts'
import { publishAction, publishOptions } from './keys.ts'

const grantsOption = {
  grants: {
    value: 'FILE',
    about:
      'YAML with TokenGrant objects, and with the Namespace objects whose labels count, instead of those of a cluster',
  },
} as const

const testOptions = {
  ...configOption,
  ...grantsOption,
  ...directoryOptions,
  ...secretsOption,
  ...outputOption,
} as const

const explainOptions = {
  ...configOption,
  token: { value: 'FILE', about: 'The token of the workload, which is verified and reviewed; - reads standard input' },
  as: {
    value: 'NAME=VALUE',
    multiple: true,
    about: `Attribute of the workload instead, without contacting a cluster; can be repeated:
namespace, saname, cluster, pod-name, ...; for an OpenID Connect issuer: issuer, sub and claims`,
  },
  ...grantsOption,
  ...directoryOptions,
  ...secretsOption,
  ...outputOption,
} as const

const explainCommand = defineCommand({
  name: 'sts explain',
  about: 'Show whether a workload would get a token of an endpoint, and why. Nothing is signed or audited.',
  usage: `--config SOURCE --token FILE [options] ENDPOINT
--config SOURCE --as NAME=VALUE ... [options] ENDPOINT`,
  arguments: ['ENDPOINT'],
  options: explainOptions,
  notes: 'Exit code: 0 if a token would be issued, 1 if it would be refused.',
  examples: ['gatehouse sts explain --config config --as namespace=shop --as saname=cart aws'],
  run: explain,
})

const testCommand = defineCommand({
  name: 'sts test',
  about: 'Check that token endpoints decide as a file expects. No cluster is contacted and nothing is signed.',
  usage: '--config SOURCE [options] FILE',
  arguments: ['FILE'],
  options: testOptions,
  notes: `FILE lists workloads that get a token, and workloads that do not:

  tests:
    - endpoint: aws
      as: { namespace: shop, saname: cart }
      allowed: true
      subject: k8s:shop:cart
      claims: { namespace: shop }

Exit code: 0 if all tests pass, 1 if a test fails or the file is invalid.`,
  examples: ['gatehouse sts test --config config policy-tests.yaml'],
  run: testPolicy,
})

export const stsCommand = defineCommand({
  name: 'sts',
  about: 'Explain, test and publish token endpoints.',
  options: publishOptions,
  actions: {
    explain: {
      usage: '--config SOURCE [options] ENDPOINT',
      about: 'Show whether a workload would get a token, and why; see "gatehouse sts explain --help"',
      command: explainCommand,
    },
    test: {
      usage: '--config SOURCE [options] FILE',
      about: 'Run policy tests; see "gatehouse sts test --help"',
      command: testCommand,
    },
    publish: { ...publishAction, about: 'Publish the documents now and read them back; takes the options below' },
  },
  examples: ['gatehouse sts publish --config config --endpoint aws'],
})

const widest = 2000

function explain(
  values: Values<typeof explainOptions>,
  [name = '']: readonly string[],
  io: CommandOutput,
): Promise<number> {
  const explained = readWorkload(values)
  const given = readGivenGrants(values)
  return withConfiguration(values, io, async (loaded) => {
    const { stsEndpoints, setAside = [] } = loaded.configuration
    const config = stsEndpoints.find(({ endpoint }) => endpoint.name === name)
    const lost = setAside.find((one) => one.kind === endpointKind && one.name === name)
    if (lost !== undefined) throw new WrongUsage(`the token endpoint "${name}" is set aside because of ${lost.reason}`)
    if (config === undefined) throw new WrongUsage(unknownEndpoint(name, stsEndpoints))
    const isDescribed = explained.kind === 'described'
    if (isDescribed) checkDescription(explained.attributes, config)
    const configuration = isDescribed ? withoutClusters(loaded.configuration) : loaded.configuration
    const { tokens, rules, grants } = await openRuntime({ ...loaded, configuration }, values)
    if (tokens === undefined) throw new Error('there is no token service')
    const decider = { tokens, rules, grants: given === undefined ? grants : givenGrants(given, stsEndpoints) }
    const { allowed, details } = await explainToken(decider, config, explained)
    for (const line of detailLines(details)) io.stdout(terminalLine(line, widest))
    io.result({ allowed, details })
    return allowed ? 0 : 1
  })
}

/** The documents of the file; undefined without one. */
function readGivenGrants({ grants: file }: { readonly grants?: string | undefined }): readonly unknown[] | undefined {
  if (file === undefined) return undefined
  const { documents, problems } = readYaml(readTestFile(file))
  const [problem] = [...problems, ...documents.flatMap((each) => each.problems)]
  if (problem !== undefined) throw new WrongUsage(`--grants: ${file}: ${problem.message}`)
  return documents.map((yaml) => yaml.toValue({ text: (text) => text, report: () => {} }))
}

function checkDescription(attributes: ReadonlyMap<string, readonly string[]>, { endpoint }: StsEndpointConfig): void {
  try {
    describeWorkload(attributes, endpoint)
  } catch (error) {
    throw new WrongUsage(`--as: ${messageOf(error)}`)
  }
}

function unknownEndpoint(name: string, endpoints: readonly StsEndpointConfig[]): string {
  const known = endpoints.map(({ endpoint }) => endpoint.name)
  const others = known.length === 0 ? 'no token endpoints are configured' : `the endpoints are ${known.join(', ')}`
  return `no token endpoint "${name}"${suggestion(name, known)}; ${others}`
}

function readWorkload({ token, as }: Values<typeof explainOptions>): ExplainedWorkload {
  if (token !== undefined && as.length > 0) throw new WrongUsage('--token and --as cannot be combined')
  if (token === undefined && as.length === 0) {
    throw new WrongUsage('--token FILE or --as NAME=VALUE is required, such as --as namespace=shop --as saname=cart')
  }
  if (token === undefined) return { kind: 'described', attributes: readPairs('as', as) }
  try {
    return { kind: 'token', token: readFileSync(token === '-' ? 0 : token, 'utf8') }
  } catch (error) {
    throw new WrongUsage(`--token: ${fileProblem(token, error)}`)
  }
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

function testPolicy(
  values: Values<typeof testOptions>,
  [file = '']: readonly string[],
  io: CommandOutput,
): Promise<number> {
  const given = readGivenGrants(values)
  return withConfiguration(values, io, async (loaded) => {
    const issues = new Issues()
    const tests = readTests(file, loaded.configuration.stsEndpoints, issues)
    if (!issues.ok) {
      for (const issue of locateIssues(issues.list)) io.stderr(formatIssue(issue))
      return 1
    }
    const configuration = withoutClusters(loaded.configuration)
    const { tokens, rules } = await openRuntime({ ...loaded, configuration }, values)
    if (tokens === undefined) throw new Error('there is no token service')
    const decider = { tokens, rules, grants: given && givenGrants(given, loaded.configuration.stsEndpoints) }
    const results: { readonly at: string; readonly title: string; readonly problems: readonly string[] }[] = []
    for (const test of tests) {
      const decision = await decideToken(decider, test.config, test.workload)
      const problems = problemsOf(test.spec, decision)
      results.push({ at: test.at, title: titleOf(test), problems })
      io.stdout(terminalLine(`${problems.length === 0 ? 'ok  ' : 'FAIL'}  ${test.at}  ${titleOf(test)}`, widest))
      for (const problem of problems) io.stdout(terminalLine(`      ${problem}`, widest))
    }
    const failed = results.filter(({ problems }) => problems.length > 0).length
    io.result({ passed: tests.length - failed, failed, tests: results })
    io.stdout(`${tests.length} test${tests.length === 1 ? '' : 's'}: ${tests.length - failed} passed, ${failed} failed`)
    return failed === 0 ? 0 : 1
  })
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
    issues.error([...path, 'endpoint'], unknownEndpoint(spec.endpoint, endpoints))
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
  const { content, refusal, verdicts, granted } = decision
  const said = [
    ...verdicts.map((verdict) => `rule ${verdictText(verdict)}`),
    ...(granted === undefined ? [] : [`grant ${grantText(granted)}`]),
    ...refusedGrants(granted).map((reason) => `  ${reason}`),
  ]
  if (content === undefined) {
    if (!allowed) return []
    const why = refusal?.message ?? (granted === undefined ? 'no rule passes' : 'no rule passes, and no grant')
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
