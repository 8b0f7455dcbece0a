import { Dn } from '#identity/dn.ts'
import { flag, text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { clustersOf } from '#sdk/target/kubernetes-cluster.ts'
import { defineDynamicWorkflow } from '#sdk/workflow/dynamic-workflow.ts'

/** Rows of a workflow for clusters and their namespaces. */

const maxSets = 1_000

const parameters = {
  cluster: text({ about: 'The name of the cluster, as it is in the names of the groups.', required: true }),
  groupsAttribute: text({ about: 'The attribute of the caller with the groups.', required: true }),
  groupsAreDN: flag({ about: 'The groups are distinguished names, of which the first value counts.' }),
  groupPrefix: text({ about: 'What is before the cluster in the name of a group.', required: true }),
  groupSuffix: text({ about: 'What is after the namespace.', fallback: '' }),
}

/**
 * One row for each namespace that the caller is an approver of: for each of their groups
 * `<groupPrefix><cluster>-<namespace><groupSuffix>`.
 */
export const listClusterApproverGroups = defineDynamicWorkflow({
  className: 'dynamicWorkflows.ClusterApproverGroups',
  aliases: ['com.tremolosecurity.scalejs.ListClusterApproverGroups'],
  ...withParameters(parameters),
  create: ({ cluster, groupsAttribute, groupsAreDN, groupPrefix, groupSuffix }) => ({
    async parameterSets({ attributes }) {
      const start = `${groupPrefix}${cluster}-`
      const names = attributes.values(groupsAttribute).flatMap((group) => (groupsAreDN ? firstValue(group) : group))
      const sets = [...new Set(names)].flatMap((groupName) => {
        const isOne = groupName.startsWith(start) && groupName.endsWith(groupSuffix)
        const nameSpace = isOne ? groupName.slice(start.length, groupName.length - groupSuffix.length) : ''
        return nameSpace === '' ? [] : [{ groupName, namespaceName: nameSpace, nameSpace }]
      })
      return sets.slice(0, maxSets)
    },
  }),
})

function firstValue(group: string): string[] {
  try {
    return (
      Dn.parse(group)
        .rdns[0]?.slice(0, 1)
        .map(({ value }) => value) ?? []
    )
  } catch {
    return []
  }
}

/** One row for each cluster. */
export const listClusters = defineDynamicWorkflow({
  className: 'dynamicWorkflows.Clusters',
  aliases: ['com.tremolosecurity.scalejs.WorkflowListClusters'],
  ...withParameters({}),
  create: (_, { targets }) => ({
    parameterSets: async () => clustersOf(targets).map(({ name, label }) => ({ cluster: name, clusterlabel: label })),
  }),
})
