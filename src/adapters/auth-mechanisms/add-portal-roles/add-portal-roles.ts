import type { Subject } from '#identity/subject.ts'
import { type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { readParameters, withParameters } from '#sdk/module/parameters.ts'
import { clustersOf } from '#sdk/target/kubernetes-cluster.ts'
import {
  clusterGroupParameters,
  clusterGroups,
  readClusterGroupNames,
} from '#sdk/target-module/cluster-group-parameters.ts'

/** What the caller's attribute `groups` means, as one JSON text that the portal shows as a table. */
const attributeName = 'portalGroups'

/** Adds a table of the user's groups to the login. */
export default defineAuthMechanism({
  className: 'auth.AddPortalRoles',
  aliases: ['com.tremolosecurity.proxy.auth.AddPortalRolesToUserData'],
  initParameters: clusterGroupParameters,
  ...withParameters({}),
  parse: (params, issues, context, init) => {
    readParameters({}, params, issues, context)
    return readClusterGroupNames(init, context)
  },
  create: (names, { targets }) => {
    const renew = async (subject: Subject | undefined): Promise<AuthOutcome> => {
      if (subject === undefined) {
        return {
          kind: 'rejected',
          reason: 'no user is signed in yet; put this mechanism after one that identifies the user',
        }
      }
      const { level: _, chain: __, ...kept } = subject
      const attributes = subject.attributes.clone()
      const groups = clusterGroups(attributes.values('groups'), names, clustersOf(targets))
      const values = [JSON.stringify(groups)]
      // Groups that a token claims are still a claim in another form.
      if (attributes.isClaim('groups')) attributes.setClaim(attributeName, values)
      else attributes.set(attributeName, values)
      return { kind: 'authenticated', subject: { ...kept, attributes } }
    }
    return { begin: ({ subject }) => renew(subject), renew }
  },
})
