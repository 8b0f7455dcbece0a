import type { TestProject } from 'vitest/node'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { missingPart } from '#testing/run/missing-part.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The address of this run's PostgreSQL; empty if none could be started. */
    postgresUrl: string
  }
}

const startMillis = 180_000

/**
 * Vitest's global setup: one PostgreSQL for the whole run, in a temporary folder, removed at the end. If none can be
 * started its tests are reported as skipped, by name; in CI the run fails.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['GATEHOUSE_TEST_POSTGRES']
  if (given !== undefined && given !== '') {
    project.provide('postgresUrl', given)
    return async () => {}
  }
  try {
    const { url, stop } = await within(startMillis, startPostgres())
    project.provide('postgresUrl', url)
    return stop
  } catch (error) {
    missingPart('PostgreSQL', error)
    project.provide('postgresUrl', '')
    return async () => {}
  }
}

async function within<T>(millis: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not ready after ${millis} ms`)), millis)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
