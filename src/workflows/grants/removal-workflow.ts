import { createHash } from 'node:crypto'
import type { Configuration } from '#config/configuration/configuration.ts'

/** The workflow that removes access that expired or was given back. Every configuration has it. */
export const removalWorkflow = 'gatehouse-revoke-access'

/** The parameters of its runs. */
export const removalParameters = { target: 'accessTarget', kind: 'accessKind', name: 'accessName' } as const

/** Says what is removed: the group, or the login of an account as a whole, and the target. */
const runDetails = `$${removalParameters.name}$ ($${removalParameters.target}$)`

const source = `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata:
  name: ${removalWorkflow}
spec:
  label: Removal of access
  description: Removes access that expired or was given back
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
 * The configuration with the removal workflow. It replaces a configured workflow of the same name, so that expired
 * access is always removed. Throws if the workflow can't be created.
 */
export function withRemovalWorkflow<C extends Pick<Configuration, 'workflows' | 'restoreWorkflow'>>(
  configuration: C,
): C {
  const hash = createHash('sha256').update(source).digest('base64url')
  const restored = configuration.restoreWorkflow({ name: removalWorkflow, hash, source })
  if ('problems' in restored) throw new Error(`${removalWorkflow}: ${restored.problems.join('; ')}`)
  const config = { ...restored.config, runDetails }
  return { ...configuration, workflows: new Map([...configuration.workflows, [removalWorkflow, config]]) }
}
