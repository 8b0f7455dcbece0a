import { nameTemplate } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderName, renderTask } from '#adapters/workflow-tasks/shared/task-template.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { flag, list, parsedList, text } from '#sdk/module/parameter-types.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { isReadOnlyKey } from '#sdk/workflow/workflow.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { onCluster, referToCluster } from './on-cluster.ts'

/** Tasks that prepare values for the objects of a cluster. */

const cluster = {
  about:
    'The [targets.Kubernetes](../targets/targets.Kubernetes.md) target of the cluster; `$key$` is a value of the request.',
  required: true,
} as const

/** Sets an attribute of the user to `exists` if the cluster has that kind. */
export const checkApiExists = defineCustomTask({
  className: 'tasks.CheckApiExists',
  aliases: ['com.tremolosecurity.provisioning.tasks.CheckApiExists'],
  parameters: {
    cluster: nameTemplate(cluster),
    apiGroup: nameTemplate({ about: 'The API version, such as `apps/v1` or `v1`; a template.', required: true }),
    apiKind: nameTemplate({ about: 'The kind, such as `Deployment`; a template.', required: true }),
    attribute: text({
      about: 'The attribute of the user that becomes `exists`; it stays as it is if the cluster has no such kind.',
      required: true,
    }),
  },
  prepare: ({ cluster: target, apiGroup, apiKind, attribute }, places) => {
    referToCluster(target, 'cluster', places)
    return {
      flow: { ...noFlow, produces: [{ attribute, path: places.pathOf('attribute') }] },
      create: (host) =>
        onCluster(target, host, async ({ api }, context) => {
          const version = renderName(apiGroup, context, 'Kubernetes object')
          const kind = renderName(apiKind, context, 'Kubernetes object')
          if ((await api.servedKind(version, kind)) === undefined) return
          context.user.attributes.set(attribute, ['exists'])
        }),
    }
  },
})

/** Copies values of a ConfigMap to the request. */
export const loadConfigMap = defineCustomTask({
  className: 'tasks.LoadConfigMap',
  aliases: ['com.tremolosecurity.provisioning.tasks.LoadConfigMap'],
  parameters: {
    target: nameTemplate(cluster),
    namespace: nameTemplate({ about: 'The namespace of the ConfigMap; a template.', required: true }),
    configmap: nameTemplate({ about: 'The name of the ConfigMap; a template.', required: true }),
    mapping: parsedList('name=key', parseMapping, {
      about: '`name=key`: the value of the request that gets that key of the ConfigMap; may be repeated.',
      required: true,
    }),
  },
  prepare: ({ target, namespace, configmap, mapping }, places) => {
    referToCluster(target, 'target', places)
    return {
      create: (host) =>
        onCluster(target, host, async ({ api, target: where }, context) => {
          const resource = {
            group: '',
            version: 'v1',
            plural: 'configmaps',
            namespace: renderName(namespace, context, 'Kubernetes object'),
          }
          const name = renderName(configmap, context, 'Kubernetes object')
          const found = await api.get(resource, name)
          if (found === undefined) {
            const text = `target "${where}": there is no ConfigMap "${name}" in "${resource.namespace}"`
            throw new GatewayError('WORKFLOW_FAILED', text)
          }
          const data = isJsonObject(found.content['data']) ? found.content['data'] : {}
          for (const { key, from } of mapping) {
            const value = Object.hasOwn(data, from) ? data[from] : undefined
            if (typeof value === 'string') context.request.set(key, value)
            else context.log.warn('a ConfigMap has no such key', { target: where, configmap: name, key: from })
          }
        }),
    }
  },
})

function parseMapping(text: string): { readonly key: string; readonly from: string } {
  const cut = text.indexOf('=')
  const [key, from] = [text.slice(0, cut).trim(), text.slice(cut + 1).trim()]
  if (cut < 0 || key === '' || from === '') throw new Error(`"${text}" is not name=key`)
  if (isReadOnlyKey(key)) throw new Error(`"${key}" is a key of the engine`)
  return { key, from }
}

/** Makes values of the request valid as labels. */
export const cleanLabels = defineCustomTask({
  className: 'tasks.CleanLabels',
  aliases: ['com.tremolosecurity.provisioning.tasks.CleanLabels'],
  parameters: {
    attributes: list({ about: 'A value of the request; may be repeated. A missing one is skipped.', required: true }),
    newAttributeSuffix: text({
      about: 'Appended to the name of the value, for the name of the new one.',
      required: true,
    }),
    replacementCharacter: text({ about: 'Replaces each invalid character.', required: true }),
  },
  prepare: ({ attributes, newAttributeSuffix, replacementCharacter }, { issues, pathOf }) => {
    if (!/^[-._A-Za-z0-9]?$/.test(replacementCharacter)) {
      const text = '"replacementCharacter" must be one letter, digit, "-", "_" or "."'
      issues.error(pathOf('replacementCharacter'), text)
    }
    for (const [i, name] of attributes.entries()) {
      if (!isReadOnlyKey(`${name}${newAttributeSuffix}`)) continue
      issues.error(pathOf('attributes', i), `"${name}${newAttributeSuffix}" is a key of the engine`)
    }
    return {
      create: () =>
        onContext(({ request }) => {
          for (const name of attributes) {
            const value = request.get(name)
            if (typeof value !== 'string' || value === '') continue
            request.set(`${name}${newAttributeSuffix}`, toLabel(value, replacementCharacter))
          }
          return next
        }),
    }
  },
})

const longestLabel = 63

/** Begins and ends with a letter or digit; an `x` is added where it does not. */
function toLabel(value: string, replacement: string): string {
  const isEdge = (character: string | undefined): boolean => /^[A-Za-z0-9]$/.test(character ?? '')
  const cleaned = value.replace(/[^-.A-Za-z0-9]/gu, replacement)
  const begun = (isEdge(cleaned[0]) ? cleaned : `x${cleaned}`).slice(0, longestLabel)
  if (isEdge(begun.at(-1))) return begun
  return `${begun.slice(0, longestLabel - 1)}x`
}

/** Always answers that the cluster is not managed by Git, so that its objects are written to the cluster. */
export const checkForGit = defineCustomTask({
  className: 'tasks.CheckForGit',
  aliases: ['com.tremolosecurity.provisioning.tasks.CheckForGit'],
  parameters: {
    namespace: text({ about: 'Not used: there is no Git repository to find.' }),
    findNamespaceRepository: flag({ about: 'Not used: there is no Git repository to find.' }),
  },
  prepare: (_, { pathOf }) => ({
    flow: { ...noFlow, produces: [{ attribute: 'useGit', path: pathOf('namespace') }] },
    create: () =>
      onContext(({ user, request }) => {
        user.attributes.set('useGit', ['false'])
        request.set('useGit', 'false')
        return next
      }),
  }),
})

const unusedByGit = text({ about: 'Not used.' })

/** Fails when a run reaches it: Gatehouse does not write to Git. It lets workflows load that use it in a branch. */
export const pushToGit = defineCustomTask({
  className: 'tasks.PushToGit',
  aliases: ['com.tremolosecurity.provisioning.tasks.PushToGit'],
  parameters: {
    secretName: unusedByGit,
    nameSpace: text({ about: 'Not used.' }),
    target: text({ about: 'Not used.' }),
    keyName: text({ about: 'Not used.' }),
    gitRepo: nameTemplate({ about: 'The repository, for the error; a template.' }),
    requestObject: text({ about: 'Not used.' }),
    commitMsg: text({ about: 'Not used.' }),
  },
  prepare: ({ gitRepo }, { issues, pathOf }) => {
    const text = 'Gatehouse does not write to Git: a run that reaches this task fails'
    issues.warning(pathOf('gitRepo'), text)
    return {
      create: () => ({
        run: (context) => {
          throw new GatewayError('NOT_SUPPORTED', `${renderTask(gitRepo, context)}: Gatehouse does not write to Git`)
        },
      }),
    }
  },
})
