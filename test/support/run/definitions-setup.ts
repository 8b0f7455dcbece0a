import type { TestProject } from 'vitest/node'
import { definitionsOfOthers } from '#testing/kubernetes/definitions-of-others.ts'
import { missingPart } from '#testing/run/missing-part.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Files with definitions of others that the chart makes objects of; undefined if they are not available. */
    definitions: readonly string[] | undefined
  }
}

/** Vitest's global setup: the definitions of Gateway API and Prometheus Operator, fetched on first use. */
export default async function setup(project: TestProject): Promise<void> {
  try {
    project.provide('definitions', await definitionsOfOthers())
  } catch (error) {
    missingPart('the definitions of Gateway API and Prometheus Operator', error)
    project.provide('definitions', undefined)
  }
}
