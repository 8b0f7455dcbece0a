import { nameTemplate } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderName } from '#adapters/workflow-tasks/shared/task-template.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import { writingFlow } from '#sdk/flow/flow.ts'
import { parsed, text } from '#sdk/module/parameter-types.ts'
import { defineCustomTask } from '#sdk/workflow/workflow-task.ts'
import { readIdentity, targetName, withName } from './kubernetes-objects.ts'
import { parseObjectTemplate } from './object-template.ts'
import { onCluster, referToCluster } from './on-cluster.ts'
import { changeExisting, putObject } from './write-objects.ts'

/** Tasks for projects of OpenShift. */

const projectVersion = 'project.openshift.io/v1'
const projects = { group: 'project.openshift.io', version: 'v1', plural: 'projects' }

/** Requests a project, unless there is one of that name. */
export const createProject = defineCustomTask({
  className: 'tasks.CreateOpenShiftProject',
  aliases: ['com.tremolosecurity.unison.openshiftv3.tasks.CreateProject'],
  parameters: {
    targetName,
    template: parsed('YAML or JSON', parseObjectTemplate, {
      about:
        'The ProjectRequest, as JSON or YAML. `$key$` in a value is a value of the request, which stays one text with any content.',
      required: true,
    }),
  },
  prepare: ({ targetName, template }, places) => {
    referToCluster(targetName, 'targetName', places)
    const identity = template && readIdentity(template, places)
    const report = (message: string): void => places.issues.error(places.pathOf('template'), message)
    if (identity !== undefined) {
      const { kind, apiVersion, namespace } = identity
      // OpenUnison's manual writes the version that OpenShift 3 had.
      const isRequest = kind === 'ProjectRequest' && (apiVersion === projectVersion || apiVersion === 'v1')
      if (!isRequest) report(`"template" must be a ProjectRequest of ${projectVersion}, not a ${kind} of ${apiVersion}`)
      if (namespace !== undefined) report('a ProjectRequest has no namespace: remove metadata.namespace')
    }
    return {
      flow: writingFlow,
      create: (host) =>
        onCluster(targetName, host, async (cluster, context) => {
          if (template === undefined || identity === undefined) return
          const served = await cluster.api.servedKind(projectVersion, 'ProjectRequest')
          if (served === undefined) {
            const text = `target "${cluster.target}" is not an OpenShift cluster: it has no kind ProjectRequest in ${projectVersion}. Create a Namespace with tasks.CreateK8sObject instead`
            throw new GatewayError('WORKFLOW_FAILED', text)
          }
          const name = renderName(identity.name, context, 'Kubernetes object')
          const createdAt = { ...projects, plural: served.plural }
          const what = { kind: 'Project', resource: projects, name, createdAt }
          const object = template.render(context)
          if (!isJsonObject(object)) return
          await putObject(cluster, what, { ...withName(object, what), apiVersion: projectVersion }, 'keep')
        }),
    }
  },
})

const rbac = 'rbac.authorization.k8s.io'

/** Adds a group to the subjects of a RoleBinding. */
export const addGroupToRole = defineCustomTask({
  className: 'tasks.AddGroupToRoleBinding',
  aliases: ['com.tremolosecurity.unison.openshiftv3.tasks.AddGroupToRole'],
  parameters: {
    targetName,
    projectName: nameTemplate({ about: 'The project, or namespace, of the RoleBinding; a template.', required: true }),
    groupName: nameTemplate({ about: 'The group that gets the role; a template.', required: true }),
    roleName: nameTemplate({
      about: 'The name of the RoleBinding, which OpenShift names like its role; a template. It must exist.',
      required: true,
    }),
    version: text({ about: 'The version of OpenShift; not used. `3.6` is an error: it had no RoleBindings.' }),
  },
  prepare: ({ targetName, projectName, groupName, roleName, version }, places) => {
    referToCluster(targetName, 'targetName', places)
    if (version === '3.6') {
      const text = '"3.6" is not supported: OpenShift 3.6 has policy bindings in place of RoleBindings'
      places.issues.error(places.pathOf('version'), text)
    }
    return {
      flow: writingFlow,
      create: (host) =>
        onCluster(targetName, host, async (cluster, context) => {
          const namespace = renderName(projectName, context, 'Kubernetes object')
          const name = renderName(roleName, context, 'Kubernetes object')
          const group = renderName(groupName, context, 'group')
          const resource = { group: rbac, version: 'v1', plural: 'rolebindings', namespace }
          await changeExisting(
            cluster,
            { kind: 'RoleBinding', resource, name },
            {
              edit: (binding) => {
                const subjects = Array.isArray(binding['subjects']) ? binding['subjects'] : []
                const isSubject = (subject: unknown): boolean =>
                  isJsonObject(subject) && subject['kind'] === 'Group' && subject['name'] === group
                if (subjects.some(isSubject)) return binding
                return { ...binding, subjects: [...subjects, { kind: 'Group', apiGroup: rbac, name: group }] }
              },
            },
          )
        }),
    }
  },
})
