import process from 'node:process'
import type { Reporter, TestModule } from 'vitest/node'
import { reportFailures } from '#testing/run/failed-tests.ts'

/** This many crashes of a run are attributed to the browser. */
const borne = 1

/** Names the tests that were retried after their page crashed, and fails a run with too many of them. */
export default class CrashedPages implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const crashed = modules
      .flatMap(({ children }) => [...children.allTests()])
      .filter((test) => (test.diagnostic()?.retryCount ?? 0) > 0)
    for (const { module, fullName } of crashed) {
      console.error(`a page crashed, and its test was tried again: ${module.relativeModuleId} > ${fullName}`)
    }
    if (crashed.length <= borne) return
    const failure = `pages of ${crashed.length} tests crashed; ${borne} is put up with`
    console.error(`FAILED: ${failure}`)
    reportFailures([failure])
    process.exitCode = 1
  }
}
