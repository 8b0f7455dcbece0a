import type { TestProject } from 'vitest/node'
import { helmBinary } from '#testing/kubernetes/helm-binary.ts'
import { missingPart } from '#testing/run/missing-part.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The program that renders and installs the chart; undefined if it is not available. */
    helm: string | undefined
  }
}

/** Vitest's global setup: helm, built if it is not installed. */
export default async function setup(project: TestProject): Promise<void> {
  try {
    project.provide('helm', await helmBinary())
  } catch (error) {
    missingPart('helm', error)
    project.provide('helm', undefined)
  }
}
