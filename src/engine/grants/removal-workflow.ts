import { createHash } from 'node:crypto'
import type { Configuration } from '#sdk/module/configuration.ts'

/** The workflow that takes back access whose time has passed. Every configuration has it. */
export const removalWorkflow = 'gatehouse-revoke-access'

/** What a run of it is told. */
export const removalParameters = { target: 'accessTarget', kind: 'accessKind', name: 'accessName' } as const

const source = `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata:
  name: ${removalWorkflow}
spec:
  label: Access that has expired
  description: Takes back access whose time has passed
  inList: false
  tasks:
    - taskType: customTask
      className: tasks.RevokeAccess
      params:
        target: $${removalParameters.target}$
        kind: $${removalParameters.kind}$
        name: $${removalParameters.name}$
`

/**
 * The configuration with the removal workflow. A workflow that somebody has given its name is left aside, so that expired
 * access is taken back whatever it does. Throws when the workflow cannot be made.
 */
export function withRemovalWorkflow<C extends Pick<Configuration, 'workflows' | 'restoreWorkflow'>>(
  configuration: C,
): C {
  const hash = createHash('sha256').update(source).digest('base64url')
  const restored = configuration.restoreWorkflow({ name: removalWorkflow, hash, source })
  if ('problems' in restored) throw new Error(`${removalWorkflow}: ${restored.problems.join('; ')}`)
  return { ...configuration, workflows: new Map([...configuration.workflows, [removalWorkflow, restored.config]]) }
}
