import { defineTarget } from '#sdk/target.ts'
import { parameters, parseScim, type ScimConfig } from './scim-parameters.ts'

/** Users and groups of another SCIM 2.0 server. */
export default defineTarget<ScimConfig>({
  className: 'targets.Scim',
  parameters,
  parse: parseScim,
  /** Loaded where there is such a target: a gateway without one is smaller and starts sooner. */
  create: async (config, host) => (await import('./open-scim-target.ts')).openScimTarget(config, host),
})
