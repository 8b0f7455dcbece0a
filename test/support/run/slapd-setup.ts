import type { TestProject } from 'vitest/node'
import { slapdTool } from '#testing/ldap/slapd.ts'
import { isOnlyNpm, missingPart } from '#testing/run/missing-part.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The path of OpenLDAP's server; empty if it is not installed. */
    slapd: string
  }
}

/** Vitest's global setup: looks for OpenLDAP, which each suite then starts for itself. */
export default function setup(project: TestProject): void {
  if (isOnlyNpm()) {
    project.provide('slapd', '')
    return
  }
  try {
    project.provide('slapd', slapdTool('slapd'))
  } catch (error) {
    missingPart('OpenLDAP (slapd)', error)
    project.provide('slapd', '')
  }
}
