import process from 'node:process'
import type { Reporter, TestModule } from 'vitest/node'
import { tellFailed } from './failed-tests.ts'

/** As many crashes of a run are taken for the browser's own fault. */
const borne = 1

/** Names the tests that were tried again since their page crashed, and fails a run with more of them than are borne. */
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
    tellFailed([failure])
    process.exitCode = 1
  }
}
