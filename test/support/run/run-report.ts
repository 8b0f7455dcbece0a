import { appendFileSync, readFileSync } from 'node:fs'
import process from 'node:process'
import { stripVTControlCharacters } from 'node:util'
import {
  DefaultReporter,
  type SerializedError,
  type TestModule,
  type TestRunEndReason,
  type TestSpecification,
} from 'vitest/node'

/** What a process of a run reports to `test/run.ts`. */
export type ReportLine =
  | { readonly kind: 'failed'; readonly file?: string; readonly test?: string; readonly reason: string }
  | { readonly kind: 'file'; readonly file: string; readonly tests: number; readonly seconds: number }
  | { readonly kind: 'missing'; readonly part: string }

/** The file that all processes of a run append to; unset if vitest was started without `test/run.ts`. */
export const reportFile = 'GATEHOUSE_TEST_REPORT'

const longestReason = 240
/** A run of fewer files shows every test. */
const fewFiles = 10

/** Such as `1 test` and `2 tests`. */
export const counted = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`

/** False if no run collects the lines. */
export function report(...lines: readonly ReportLine[]): boolean {
  const file = process.env[reportFile]
  if (file === undefined) return false
  appendFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return true
}

export const readReport = (file: string): readonly ReportLine[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** A failure with the beginning of its reason, in one line. */
export const failure = (reason: string, place: { file?: string; test?: string } = {}): ReportLine => ({
  kind: 'failed',
  ...place,
  reason: stripVTControlCharacters(reason).replaceAll(/\s+/g, ' ').slice(0, longestReason),
})

/** Vitest's own reporter, with a line for each file of a long run, that reports failures and the time of each file. */
export default class RunReport extends DefaultReporter {
  #files = 0
  #ended = 0

  override onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#files = specifications.length
    super.onTestRunStart(specifications)
  }

  override printTestModule(module: TestModule): void {
    if (this.isTTY || module.state() !== 'passed' || this.#files < fewFiles) super.printTestModule(module)
    else
      this.log(
        `✓ ${++this.#ended}/${this.#files} ${module.relativeModuleId} (${counted(testsIn(module), 'test')}, ${secondsOf(module).toFixed(1)} s)`,
      )
  }

  override onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    super.onTestRunEnd(modules, unhandled, reason)
    report(
      ...modules.flatMap(failuresIn),
      ...unhandled.map(({ message }) => failure(`outside of a test: ${message}`)),
      ...modules.map(
        (module): ReportLine => ({
          kind: 'file',
          file: module.relativeModuleId,
          tests: testsIn(module),
          seconds: secondsOf(module),
        }),
      ),
    )
  }
}

/** Those that ran: a title selects some. */
const testsIn = (module: TestModule): number =>
  [...module.children.allTests()].filter((test) => test.result().state !== 'skipped').length

function secondsOf(module: TestModule): number {
  const { duration, collectDuration, setupDuration } = module.diagnostic()
  return (duration + collectDuration + setupDuration) / 1000
}

function failuresIn(module: TestModule): ReportLine[] {
  const file = module.relativeModuleId
  return [
    ...module.errors().map(({ message }) => failure(message, { file })),
    ...[...module.children.allSuites()].flatMap((suite) =>
      suite.errors().map(({ message }) => failure(message, { file, test: suite.fullName })),
    ),
    ...[...module.children.allTests('failed')].map((test) =>
      failure(test.result().errors?.at(-1)?.message ?? '', { file, test: test.fullName }),
    ),
  ]
}
