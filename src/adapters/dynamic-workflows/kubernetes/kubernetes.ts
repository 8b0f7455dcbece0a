import { Dn } from '#identity/dn.ts'
import { isForbiddenKey, isJsonObject } from '#kernel/json.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import { flag, list, parsed, text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { clustersOf, objectsOf } from '#sdk/target/kubernetes-cluster.ts'
import { defineDynamicWorkflow, type ParameterSet } from '#sdk/workflow/dynamic-workflow.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'

/** Rows of a workflow for clusters and their namespaces. */

const maxSets = 1_000

/** Group, version, namespace and resource. */
const listForm = /^\/api(?:s\/([^/]+))?\/([^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)$/

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

/**
 * One row for each object of a kind, with its name, namespace, annotations and labels; in the names of those, `-` and
 * `.` become `_`.
 */
export const kubernetesObjects = defineDynamicWorkflow({
  className: 'dynamicWorkflows.KubernetesObjects',
  aliases: ['com.tremolosecurity.unison.openshiftv3.wf.OpenShiftWorkflows'],
  ...withParameters({
    target: text({
      about: 'The [targets.Kubernetes](../targets/targets.Kubernetes.md) target of the cluster.',
      required: true,
      reference: 'target',
    }),
    kind: parsed('path', parseListPath, {
      about:
        'The path of the objects in the API, such as `/api/v1/namespaces`; `?labelSelector=` selects some of them.',
      required: true,
      fallback: parseListPath('/api/v1/namespaces'),
    }),
    filter: list({ about: 'The name of an object that gets no row; may be repeated.' }),
  }),
  create: ({ target, kind: { resource, labels }, filter }, { targets }) => ({
    async parameterSets() {
      const selection = labels === undefined ? undefined : { labels }
      const found = await objectsOf(targets, target).list(resource, maxSets, selection)
      return found.filter(({ metadata }) => !filter.includes(metadata.name)).map(objectSet)
    },
  }),
})

/** Own facts of the object come last, so that no label replaces them. */
function objectSet({ metadata: { name, namespace }, content }: ClusterObject): ParameterSet {
  const metadata = isJsonObject(content['metadata']) ? content['metadata'] : {}
  const given = [metadata['annotations'], metadata['labels']].flatMap((one) => Object.entries(one ?? {}))
  const values = given.flatMap(([key, value]) => {
    const parameter = key.replaceAll(/[-.]/g, '_')
    const isUsable = typeof value === 'string' && !isEngineKey(parameter) && !isForbiddenKey(parameter)
    return isUsable ? [[parameter, value] as const] : []
  })
  return Object.fromEntries([...values, ...(namespace === undefined ? [] : [['namespace', namespace]]), ['name', name]])
}

/** Throws an Error that says what is wrong. */
function parseListPath(text: string): { readonly resource: ClusterResource; readonly labels: string | undefined } {
  const [path = '', query, ...others] = text.split('?')
  const [, group = '', version = '', namespace, plural = ''] = listForm.exec(decodeURIComponent(path)) ?? []
  if (plural === '' || others.length > 0)
    throw new Error(`"${text}" is not the path of a list, such as /api/v1/namespaces`)
  const given = [...new URLSearchParams(query)]
  const [parameter, labels] = given[0] ?? []
  if (given.length > 1 || (given.length === 1 && (parameter !== 'labelSelector' || labels === ''))) {
    throw new Error(`"?${query}" is not supported; there is ?labelSelector=NAME%3DVALUE`)
  }
  return { resource: { group, version, plural, namespace }, labels }
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
