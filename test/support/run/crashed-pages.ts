import process from 'node:process'
import type { Reporter, TestModule } from 'vitest/node'
import { failure, report } from '#testing/run/run-report.ts'

/** This many crashes of a run are attributed to the browser. */
const tolerated = 1

/** Names the tests that were retried after their page crashed, and fails a run with too many of them. */
export default class CrashedPages implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const crashed = modules
      .flatMap(({ children }) => [...children.allTests()])
      .filter((test) => (test.diagnostic()?.retryCount ?? 0) > 0)
    for (const { module, fullName } of crashed) {
      console.error(`a page crashed, and its test was retried: ${module.relativeModuleId} > ${fullName}`)
    }
    if (crashed.length <= tolerated) return
    const reason = `pages of ${crashed.length} tests crashed; at most ${tolerated} may`
    console.error(`FAILED: ${reason}`)
    report(failure(reason))
    process.exitCode = 1
  }
}
