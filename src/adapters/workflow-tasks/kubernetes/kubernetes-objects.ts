import { nameTemplate } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderName, renderTask } from '#adapters/workflow-tasks/shared/task-template.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { Template } from '#kernel/template.ts'
import type { ClusterPatch, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import { writingFlow } from '#sdk/flow/flow.ts'
import { choice, flag, parsed, text } from '#sdk/module/parameter-types.ts'
import type { ClusterApi } from '#sdk/target/kubernetes-cluster.ts'
import { type CustomTaskPlaces, defineCustomTask, type TaskContext } from '#sdk/workflow/workflow-task.ts'
import { nodeAt, type ObjectTemplate, parseObjectTemplate } from './object-template.ts'
import { parseObjectUrl } from './object-url.ts'
import { onCluster, referToCluster } from './on-cluster.ts'
import { changeExisting, deleteObject, type NamedObject, putObject } from './write-objects.ts'

/** Tasks that create, change and delete objects of a cluster. */

/** The parameter that names the cluster. */
export const targetName = nameTemplate({
  about:
    'The [targets.Kubernetes](../targets/targets.Kubernetes.md) target of the cluster; `$key$` is a value of the request.',
  required: true,
})

const url = parsed('path', parseObjectUrl, {
  about:
    'The path of the object in the API, such as `/api/v1/namespaces/$nameSpace$`. `$key$` is a value of the request and may stand for the namespace and the name.',
  required: true,
})

const kindParameter = text({ about: 'The kind of the object; the task fails if the object is of another kind.' })

/** What OpenUnison commits to Git, which is outside of this product. */
const gitParameters = {
  writeToRequest: nameTemplate({
    about:
      'A run fails where this is `"true"`, also as the value of a template: objects are written to the cluster, not to Git.',
  }),
  requestAttribute: text({ about: 'Not used: it belongs to `writeToRequest`.' }),
  path: text({ about: 'Not used: it belongs to `writeToRequest`.' }),
}

const patchTypes = ['merge', 'strategic', 'json'] as const

/** Creates an object; an existing one gets exactly this content, or the patch. */
export const createK8sObject = defineCustomTask({
  className: 'tasks.CreateK8sObject',
  aliases: ['com.tremolosecurity.provisioning.tasks.CreateK8sObject'],
  parameters: {
    targetName,
    template: parsed('YAML or JSON', parseObjectTemplate, {
      about:
        'The object, as YAML or JSON. `$key$` in a value or a key is a value of the request, which stays one text with any content.',
      required: true,
    }),
    srcType: choice(['yaml', 'json', 'YAML', 'JSON'], {
      about: 'What `template` is written in; both are recognized.',
      fallback: 'yaml',
    }),
    doPost: flag({ about: '`"false"`: the object must exist.', fallback: true }),
    patchTemplate: parsed('YAML or JSON', parseObjectTemplate, {
      about: 'How to change an existing object, instead of replacing it.',
    }),
    patchType: choice([...patchTypes, 'apply'], {
      about: 'How `patchTemplate` is merged. `apply` counts without `patchTemplate`, and then replaces the object.',
      fallback: undefined,
    }),
    kind: text({ about: 'Not used: the kind is in `template`.' }),
    url: text({ about: 'Not used: the path follows from `template`.' }),
    ...gitParameters,
  },
  prepare: (given, places) => {
    const { template, patchTemplate, patchType, doPost } = given
    const identity = template === undefined ? undefined : readIdentity(template, places)
    const type = patchType === 'apply' || patchType === undefined ? 'merge' : patchType
    if (patchTemplate !== undefined && patchType === 'apply') {
      const text = '"apply" cannot be given with "patchTemplate"; use merge, strategic or json'
      places.issues.error(places.pathOf('patchType'), text)
    }
    checkPatch('patchTemplate', patchTemplate, type, places)
    checkCommon(given, places)
    return {
      flow: writingFlow,
      create: (host) =>
        onCluster(given.targetName, host, async (cluster, context) => {
          refuseGit(given.writeToRequest, context)
          if (template === undefined || identity === undefined) return
          const what = await nameObject(cluster.api, identity, context, cluster.target)
          const object = template.render(context)
          if (!isJsonObject(object)) return
          const named = withName(object, what)
          const patch = patchTemplate && { type, content: patchTemplate.render(context) }
          if (doPost) await putObject(cluster, what, named, patch ?? 'replace')
          else await changeExisting(cluster, what, patch === undefined ? { object: named } : { patch })
        }),
    }
  },
})

/** Deletes an object, or all that a label selector finds. What does not exist needs no deletion. */
export const deleteK8sObject = defineCustomTask({
  className: 'tasks.DeleteK8sObject',
  aliases: ['com.tremolosecurity.provisioning.tasks.DeleteK8sObject'],
  parameters: {
    targetName,
    url: parsed('path', parseObjectUrl, {
      about:
        'The path of the object in the API, or the path of a collection with `?labelSelector=`. `$key$` is a value of the request and may stand for the namespace, the name and the value of a label.',
      required: true,
    }),
    kind: kindParameter,
    ...gitParameters,
  },
  prepare: (given, places) => {
    checkCommon(given, places)
    const { url, kind = '' } = given
    return {
      flow: writingFlow,
      create: (host) =>
        onCluster(given.targetName, host, async (cluster, context) => {
          refuseGit(given.writeToRequest, context)
          if (url === undefined) return
          const { resource, name, labels } = url.render(context)
          if (name !== undefined) {
            await deleteObject(cluster, { kind, resource, name })
            return
          }
          for (const found of await cluster.api.list(resource, maxSelected, { labels: labels ?? '' })) {
            const { name, namespace } = found.metadata
            const place = namespace === undefined ? {} : { namespace }
            await deleteObject(cluster, { kind, resource: { ...resource, ...place }, name }, found)
          }
        }),
    }
  },
})

/** The most objects that one label selector may delete. */
const maxSelected = 1_000

/** Changes an existing object. */
export const patchK8sObject = defineCustomTask({
  className: 'tasks.PatchK8sObject',
  aliases: ['com.tremolosecurity.provisioning.tasks.PatchK8sObject'],
  parameters: {
    targetName,
    url,
    kind: kindParameter,
    template: parsed('YAML or JSON', parseObjectTemplate, {
      about: 'The patch, as YAML or JSON. `$key$` in a value or a key is a value of the request.',
      required: true,
    }),
    patchType: choice(patchTypes, {
      about:
        'How the patch is merged: by RFC 7386, by the merge keys of the kind, or as operations of RFC 6902. Operations record their step in the annotation `gatehouse.dev/last-patch`, so that they are applied once.',
      fallback: 'merge',
    }),
    ...gitParameters,
  },
  prepare: (given, places) => {
    checkCommon(given, places)
    const { url, kind = '', template, patchType: type } = given
    checkPatch('template', template, type, places)
    if (url !== undefined && url.name === undefined) {
      places.issues.error(places.pathOf('url'), '"url" must be the path of one object')
    }
    return {
      flow: writingFlow,
      create: (host) =>
        onCluster(given.targetName, host, async (cluster, context) => {
          refuseGit(given.writeToRequest, context)
          if (url === undefined || template === undefined) return
          const { resource, name = '' } = url.render(context)
          await changeExisting(
            cluster,
            { kind, resource, name },
            { patch: { type, content: template.render(context) } },
          )
        }),
    }
  },
})

interface CommonParameters {
  readonly targetName: Template
  readonly writeToRequest: Template
}

const gitRefusal =
  'objects cannot be written to Git: remove "writeToRequest" to write them to the cluster, or let a task of your own commit them'

function checkCommon({ targetName, writeToRequest }: CommonParameters, places: CustomTaskPlaces): void {
  referToCluster(targetName, 'targetName', places)
  if (writeToRequest.text.trim().toLowerCase() !== 'true') return
  // Workflows of OpenUnison reach such a task only where tasks.CheckForGit answers that the cluster uses Git.
  const problem = 'Gatehouse does not write to Git: a run that reaches this task fails'
  places.issues.warning(places.pathOf('writeToRequest'), problem)
}

function refuseGit(writeToRequest: Template, context: TaskContext): void {
  if (renderTask(writeToRequest, context).trim().toLowerCase() !== 'true') return
  throw new GatewayError('WORKFLOW_FAILED', `"${writeToRequest.text}" is true, and ${gitRefusal}`)
}

function checkPatch(
  parameter: string,
  template: ObjectTemplate | undefined,
  type: ClusterPatch['type'],
  { issues, pathOf: place }: CustomTaskPlaces,
): void {
  if (template === undefined) return
  const needed = type === 'json' ? 'list' : 'map'
  if (template.root.kind === needed) return
  const words =
    type === 'json' ? 'a list of operations where patchType is "json"' : `an object where patchType is "${type}"`
  issues.error(place(parameter), `"${parameter}" must be ${words}`)
}

/** What the template says about the object's identity, checked before any value is known. */
interface ObjectIdentity {
  readonly apiVersion: string
  readonly kind: string
  readonly name: Template
  readonly namespace: Template | undefined
}

export function readIdentity(
  { root }: ObjectTemplate,
  { issues, pathOf: place }: CustomTaskPlaces,
): ObjectIdentity | undefined {
  const report = (message: string): undefined => {
    issues.error(place('template'), message)
  }
  if (root.kind !== 'map') return report('"template" must be one object with apiVersion, kind and metadata')
  const [apiVersion, kind] = ['apiVersion', 'kind'].map((field) => {
    const node = nodeAt(root, [field])
    if (node?.kind === 'fixed' && typeof node.value === 'string' && node.value !== '') return node.value
    return report(`"template" needs a fixed "${field}": a request must not choose the kind of an object`)
  })
  if (nodeAt(root, ['metadata', 'generateName']) !== undefined) {
    return report('"generateName" would create another object in every attempt; use "name"')
  }
  const [name, namespace] = ['name', 'namespace'].map((field) => nameIn(nodeAt(root, ['metadata', field])))
  if (name === undefined) return report('"template" needs metadata.name')
  return apiVersion && kind ? { apiVersion, kind, name, namespace } : undefined
}

function nameIn(node: ReturnType<typeof nodeAt>): Template | undefined {
  if (node?.kind === 'text') return node.text
  if (node?.kind !== 'fixed' || node.value === null || node.value === '') return undefined
  const text = String(node.value)
  return { text, keys: [], attributes: [], render: () => text }
}

async function nameObject(
  api: ClusterApi,
  { apiVersion, kind, name, namespace }: ObjectIdentity,
  context: TaskContext,
  target: string,
): Promise<NamedObject> {
  const served = await api.servedKind(apiVersion, kind)
  if (served === undefined) {
    throw new GatewayError('WORKFLOW_FAILED', `target "${target}" has no kind ${kind} in ${apiVersion}`)
  }
  if (served.namespaced !== (namespace !== undefined)) {
    const needs = served.namespaced ? 'needs metadata.namespace' : 'has no namespace: remove metadata.namespace'
    throw new GatewayError('WORKFLOW_FAILED', `a ${kind} ${needs}`)
  }
  const [group = '', version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
  const resource: ClusterResource = {
    group,
    version: version ?? '',
    plural: served.plural,
    namespace: namespace === undefined ? undefined : renderName(namespace, context, 'Kubernetes object'),
  }
  return { kind, resource, name: renderName(name, context, 'Kubernetes object') }
}

/** The name in the object is the one in its path. */
export function withName(object: JsonObject, { resource: { namespace }, name }: NamedObject): JsonObject {
  const metadata = isJsonObject(object['metadata']) ? object['metadata'] : {}
  return { ...object, metadata: { ...metadata, name, ...(namespace === undefined ? {} : { namespace }) } }
}
