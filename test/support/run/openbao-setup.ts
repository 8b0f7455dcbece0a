import type { TestProject } from 'vitest/node'
import { missingPart } from '#testing/run/missing-part.ts'
import { openBaoBinary } from '#testing/sts/openbao.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The server that stores keys; undefined if it is not available. */
    openbao: string | undefined
  }
}

/** Vitest's global setup: the server that stores keys, built on first use. */
export default async function setup(project: TestProject): Promise<void> {
  try {
    project.provide('openbao', await openBaoBinary())
  } catch (error) {
    missingPart('OpenBao', error)
    project.provide('openbao', undefined)
  }
}
