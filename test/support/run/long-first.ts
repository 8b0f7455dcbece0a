import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** They are slow for their size, by which files are ordered without an earlier run. */
export const longFiles = [
  'src/features/sts/injector/sidecar.programs.test.ts',
  'test/kube/sts-rotation.kube.test.ts',
  'src/adapters/targets/sql/sql-hostile.conformance.test.ts',
  'src/adapters/directory-inserts/database/database.conformance.test.ts',
  'test/stories/scim-clients/clients-in-tables.test.ts',
  'test/stories/audit.test.ts',
  'test/browser/portal-scale.browser.test.ts',
] as const

/** Starts with the slow files, so that no tier waits for one of them at its end. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification) => longFiles.some((file) => moduleId.endsWith(`/${file}`))
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
