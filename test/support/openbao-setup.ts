import type { TestProject } from 'vitest/node'
import { missingPart } from './missing-part.ts'
import { openBaoBinary } from './openbao.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The server that keeps keys; undefined when it cannot be had. */
    openbao: string | undefined
  }
}

/** Vitest's global set-up: the server that keeps keys, built where it is not there yet. */
export default async function setup(project: TestProject): Promise<void> {
  try {
    project.provide('openbao', await openBaoBinary())
  } catch (error) {
    missingPart('OpenBao', error)
    project.provide('openbao', undefined)
  }
}
