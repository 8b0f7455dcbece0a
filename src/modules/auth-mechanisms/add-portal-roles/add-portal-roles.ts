import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters, withParameters } from '#sdk/module/parameters.ts'

const unused = text({ about: 'Not used.' })

const initParameters = { extSuffix: unused, intSuffix: unused, k8sTargetName: unused, role2label: unused }

/**
 * Passes every login. In OpenUnison it adds labels of groups for its portal page and its reverse proxy, and decides
 * nothing; without it, chains of existing portals would not load.
 */
export default defineAuthMechanism({
  className: 'auth.AddPortalRoles',
  aliases: ['com.tremolosecurity.proxy.auth.AddPortalRolesToUserData'],
  initParameters,
  ...withParameters({}),
  parse: (params, issues, context) => {
    readParameters({}, params, issues, context)
    const message = 'auth.AddPortalRoles has no effect here: the portal shows the names of groups'
    issues.warning(params.pathOf('').slice(0, -1), message)
  },
  create: () => ({ begin: async () => ({ kind: 'passed' }) }),
})
