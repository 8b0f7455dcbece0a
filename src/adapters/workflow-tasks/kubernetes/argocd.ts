import { createHash } from 'node:crypto'
import { nameTemplate } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderName, renderTask } from '#adapters/workflow-tasks/shared/task-template.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import { writingFlow } from '#sdk/flow/flow.ts'
import { choice, parsed, text } from '#sdk/module/parameter-types.ts'
import { type ArgoCd, type ArgoCdRepository, isArgoCd } from '#sdk/target/argocd.ts'
import { defineCustomTask, next, type TaskContext } from '#sdk/workflow/workflow-task.ts'
import { targetName } from './kubernetes-objects.ts'
import { onCluster, referToCluster, type StepCluster } from './on-cluster.ts'
import { changeExisting, putObject } from './write-objects.ts'

/** Tasks that configure Argo CD. */

const policyKey = 'policy.csv'

/** Adds lines to the policy of Argo CD. A line that is already there is not added again. */
export const addToRbac = defineCustomTask({
  className: 'tasks.AddArgoCDPolicies',
  aliases: ['com.tremolosecurity.argocd.tasks.AddtoRBAC'],
  parameters: {
    k8sTarget: targetName,
    toAdd: parsed('policy lines', parsePolicies, {
      about:
        'Lines of the policy: `p, subject, resource, action, object, effect` or `g, group, role`. `$key$` is a value of the request, in the subject and object of `p` and in both names of `g`. It can not make a name `role:admin` or `role:readonly`.',
      required: true,
    }),
    namespace: text({ about: 'The namespace of Argo CD.', fallback: 'argocd' }),
  },
  prepare: ({ k8sTarget, toAdd: lines = [], namespace }, places) => {
    referToCluster(k8sTarget, 'k8sTarget', places)
    return {
      flow: writingFlow,
      create: (host) =>
        onCluster(k8sTarget, host, async (cluster, context) => {
          const resource = { group: '', version: 'v1', plural: 'configmaps', namespace }
          await changeExisting(
            cluster,
            { kind: 'ConfigMap', resource, name: 'argocd-rbac-cm' },
            {
              edit: (content) => {
                const data = isJsonObject(content['data']) ? content['data'] : {}
                const isRegex = data['policy.matchMode'] === 'regex'
                const wanted = lines.map((line) => renderPolicy(line, context, isRegex))
                const policy = typeof data[policyKey] === 'string' ? data[policyKey] : ''
                const there = new Set(policy.split('\n').map(spaced))
                const missing = [...new Set(wanted)].filter((line) => !there.has(line))
                if (missing.length === 0) return content
                const before = policy === '' || policy.endsWith('\n') ? policy : `${policy}\n`
                return { ...content, data: { ...data, [policyKey]: `${before}${missing.join('\n')}\n` } }
              },
            },
          )
        }),
    }
  },
})

interface PolicyForm {
  readonly fields: number
  /** The fields that a request may choose a part of. */
  readonly open: readonly number[]
  /** What it may choose: no comma, line break, quote or pattern, which could add a field, a line or rights. */
  readonly value: RegExp
  /** How the value is described to a requester. */
  readonly characters: string
}

const policyForms: Readonly<Record<string, PolicyForm>> = {
  p: {
    fields: 6,
    open: [1, 4],
    value: /^[\p{L}\p{N}_:@=.-](?:[\p{L}\p{N}_:@=. -]{0,252}[\p{L}\p{N}_:@=.-])?$/u,
    characters: 'letters, digits, spaces and - _ . : @ =',
  },
  /** Groups may be paths. */
  g: {
    fields: 3,
    open: [1, 2],
    value: /^[\p{L}\p{N}_:@=./-](?:[\p{L}\p{N}_:@=./ -]{0,252}[\p{L}\p{N}_:@=./-])?$/u,
    characters: 'letters, digits, spaces and - _ . : @ = /',
  },
}

/** Roles that Argo CD has from the start; `role:admin` may do everything. */
const builtInRole = /^role:(?:admin|readonly)$/

interface PolicyLine {
  readonly form: PolicyForm
  readonly fields: readonly Template[]
}

/** Throws an Error that says which line is wrong. Empty lines and comments are left out. */
function parsePolicies(text: string): PolicyLine[] {
  const lines = text.split('\n').map((line) => line.trim())
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const fields = line.split(',').map((field) => parseTemplate(field.trim(), { keys: true, attributes: false }))
      const form = policyForms[fields[0]?.text ?? '']
      if (form === undefined || fields.length !== form.fields || fields.some(({ text }) => text === '')) {
        throw new Error(`"${line}" is neither "p, subject, resource, action, object, effect" nor "g, group, role"`)
      }
      const closed = fields.find(({ keys }, i) => keys.length > 0 && !form.open.includes(i))
      if (closed !== undefined) {
        throw new Error(`"${closed.text}" in "${line}" must be a fixed text: a request must not choose it`)
      }
      return { form, fields }
    })
}

/** The line as it is compared: with one space after each comma. */
const spaced = (line: string): string =>
  line
    .split(',')
    .map((field) => field.trim())
    .join(', ')

/** Throws BAD_REQUEST for a value that would change the meaning of the line, and UNPROCESSABLE for a missing one. */
function renderPolicy({ form, fields }: PolicyLine, context: TaskContext, isRegex: boolean): string {
  // In a regular expression, a dot would match other names too.
  const isPattern = (value: string): boolean => isRegex && form === policyForms['p'] && value.includes('.')
  const refuse = (value: string, hint: string): never => {
    const shown = JSON.stringify(value.slice(0, 100))
    throw new GatewayError('BAD_REQUEST', `${shown} can't be part of a policy of Argo CD`, {
      publicText: `${shown} can’t be part of a policy of Argo CD. ${hint}`,
    })
  }
  const checked = (value: string): string =>
    form.value.test(value) && !isPattern(value) ? value : refuse(value, `Use ${form.characters}.`)
  return fields
    .map((field) => {
      renderName(field, context, 'Kubernetes object')
      const text = renderTask(field, context, checked)
      const isChosenRole = field.keys.length > 0 && builtInRole.test(text)
      return isChosenRole ? refuse(text, 'Choose another name: Argo CD has a role of this one.') : text
    })
    .join(', ')
}

/** Registers a repository with Argo CD: by its API, or by the Secret that it reads in its cluster. */
export const createGitRepository = defineCustomTask({
  className: 'tasks.CreateArgoCDRepository',
  aliases: ['com.tremolosecurity.argocd.tasks.CreateGitRepository'],
  parameters: {
    target: nameTemplate({
      about:
        'The [targets.ArgoCD](../targets/targets.ArgoCD.md) target, or the [targets.Kubernetes](../targets/targets.Kubernetes.md) target of the cluster that Argo CD runs in; `$key$` is a value of the request.',
      required: true,
    }),
    type: choice(['git', 'helm'], { about: 'The type of the repository.', fallback: 'git' }),
    name: nameTemplate({ about: 'The name that Argo CD shows; a template.', required: true }),
    repoUrl: nameTemplate({
      about: 'The address of the repository, without a password or token; a template.',
      required: true,
    }),
    sshPrivateKey: nameTemplate({
      about: 'The private key that Argo CD reads it with, as a value of the request such as `$gitPrivateKey$`.',
      required: true,
    }),
    namespace: text({ about: 'The namespace of Argo CD, with a `targets.Kubernetes` target.', fallback: 'argocd' }),
  },
  prepare: ({ target, type, name, repoUrl, sshPrivateKey, namespace }, places) => {
    referToCluster(target, 'target', places)
    if (sshPrivateKey.text !== '' && sshPrivateKey.keys.length === 0) {
      const text = '"sshPrivateKey" must be a value of the request: a key in the configuration can be read by others'
      places.issues.error(places.pathOf('sshPrivateKey'), text)
    }
    const repositoryOf = (context: TaskContext): ArgoCdRepository => {
      const url = renderName(repoUrl, context, 'Kubernetes object').trim()
      // The address is shown in previews and the audit.
      if (hasCredential.test(url)) {
        throw new GatewayError('BAD_REQUEST', 'the address of a repository has a password or a token', {
          publicText: 'The address of the repository must not have a password or a token.',
        })
      }
      if (!/^[^\s\p{Cc}]{1,2048}$/u.test(url)) {
        const shown = JSON.stringify(url.slice(0, 100))
        throw new GatewayError('BAD_REQUEST', `${shown} is not the address of a repository`)
      }
      return {
        type,
        name: renderName(name, context, 'Kubernetes object'),
        url,
        sshPrivateKey: renderName(sshPrivateKey, context, 'Kubernetes object'),
      }
    }
    return {
      flow: writingFlow,
      create: (host) => {
        const inCluster = onCluster(target, host, (cluster, context) =>
          putRepositorySecret(cluster, namespace, repositoryOf(context)),
        )
        const argoCdOf = (context: TaskContext): ArgoCd | undefined => {
          const name = renderName(target, context, 'target')
          const found = host.targets.names?.().includes(name) === false ? undefined : host.targets.get(name)
          return found !== undefined && isArgoCd(found) ? found : undefined
        }
        return {
          async run(context) {
            const argoCd = argoCdOf(context)
            if (argoCd === undefined) return inCluster.run(context)
            const repository = repositoryOf(context)
            const request = context.forTarget(renderName(target, context, 'target'))
            const action = (await argoCd.hasRepository(repository.url, request)) ? 'replace' : 'add'
            await argoCd.putRepository(repository, request)
            request.audit({ subject: 'entry', action, attribute: 'argocd-repository', value: repository.url })
            return next
          },
          preview(context) {
            if (argoCdOf(context) === undefined) return inCluster.preview?.(context) ?? next
            const { url } = repositoryOf(context)
            throw new GatewayError('NOT_SUPPORTED', `Argo CD can't show what ${url} would change`, {
              publicText: `Registers ${url} with Argo CD.`,
            })
          },
        }
      },
    }
  },
})

/** A password, or anything before the host of a web address: many services take a token as the user. */
const hasCredential = /^(?:https?:\/\/[^/?#]*@|[a-z][a-z0-9+.-]*:\/\/[^/?#@]*:[^/?#]*@)/i

async function putRepositorySecret(
  cluster: StepCluster,
  namespace: string,
  { url, ...rest }: ArgoCdRepository,
): Promise<undefined> {
  const resource = { group: '', version: 'v1', plural: 'secrets', namespace }
  // One Secret for each address: a second one would contradict the first.
  const digest = createHash('sha256').update(url).digest('hex').slice(0, 32)
  const what = { kind: 'Secret', resource, name: `repo-${digest}` }
  const labels = { 'argocd.argoproj.io/secret-type': 'repository' }
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: what.name, namespace, labels },
    type: 'Opaque',
    stringData: { ...rest, url },
  }
  await putObject(cluster, what, secret, 'replace')
}
