import { appendFileSync } from 'node:fs'
import process from 'node:process'
import { stripVTControlCharacters } from 'node:util'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

/** The file in which `test/run.ts` collects what failed in a run. */
export const failedTestsFile = 'GATEHOUSE_TEST_FAILED_TESTS'

const longest = 240

/** Names what failed, a line each with the beginning of its reason, for the end of a run of many tiers. */
export default class FailedTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const file = process.env[failedTestsFile]
    if (file === undefined) return
    const lines = [
      ...modules.flatMap((module) => [
        ...module.errors().map((error) => line(module.relativeModuleId, error)),
        ...[...module.children.allSuites()].flatMap((suite) =>
          suite.errors().map((error) => line(`${module.relativeModuleId} > ${suite.fullName}`, error)),
        ),
        ...[...module.children.allTests('failed')].map((test) =>
          line(`${module.relativeModuleId} > ${test.fullName}`, test.result().errors?.at(-1)),
        ),
      ]),
      ...unhandled.map((error) => line('outside of a test', error)),
    ]
    appendFileSync(file, lines.join(''))
  }
}

function line(name: string, error: { readonly message: string } | undefined): string {
  const reason = stripVTControlCharacters(error?.message ?? '').replaceAll(/\s+/g, ' ')
  return `${`${name}: ${reason}`.slice(0, longest)}\n`
}
