import { appendFileSync } from 'node:fs'
import process from 'node:process'
import { stripVTControlCharacters } from 'node:util'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

/** The file in which `test/run.ts` collects failures. */
export const failedTestsFile = 'GATEHOUSE_TEST_FAILED_TESTS'

const longest = 240

/** Prints the failures again at the end of a run of many tiers, one line each; long ones are truncated. */
export function reportFailures(failures: readonly string[]): void {
  const file = process.env[failedTestsFile]
  if (file === undefined) return
  const lines = failures.map((text) => stripVTControlCharacters(text).replaceAll(/\s+/g, ' ').slice(0, longest))
  appendFileSync(file, lines.map((line) => `${line}\n`).join(''))
}

/** Reports failures, with the beginning of their reasons. */
export default class FailedTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    reportFailures([
      ...modules.flatMap((module) => [
        ...module.errors().map(({ message }) => `${module.relativeModuleId}: ${message}`),
        ...[...module.children.allSuites()].flatMap((suite) =>
          suite.errors().map(({ message }) => `${module.relativeModuleId} > ${suite.fullName}: ${message}`),
        ),
        ...[...module.children.allTests('failed')].map(
          (test) => `${module.relativeModuleId} > ${test.fullName}: ${test.result().errors?.at(-1)?.message ?? ''}`,
        ),
      ]),
      ...unhandled.map(({ message }) => `outside of a test: ${message}`),
    ])
  }
}
