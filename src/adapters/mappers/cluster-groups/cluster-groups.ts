import { readPositional } from '#adapters/mappers/shared/mapper-parameters.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'
import { groupsInCluster } from '#sdk/target/cluster-groups.ts'

/** Those of the user's `groups` that count in the cluster that the parameter names. */
export default defineMapper({
  className: 'mappers.ClusterGroups',
  aliases: [],
  prepare: (parameters, path, issues) => {
    const given = readPositional(['cluster'], parameters, path, issues)
    if (given === undefined) return undefined
    const [cluster] = given
    return {
      reads: ['groups'],
      create: ({ targets }) => ({ map: (source) => groupsInCluster(source.values('groups'), cluster, targets) }),
    }
  },
})
