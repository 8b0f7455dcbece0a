import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import kubernetes from '#adapters/targets/kubernetes/kubernetes.ts'
import { targetFixture } from '#sdk/conformance/target-fixture.ts'
import { objectsOf } from '#sdk/target/kubernetes-cluster.ts'
import type { Target } from '#sdk/target/target.ts'
import { callMillis } from '#testing/hostile/hostile-coverage.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { customTask, recordingLogger, startWorkflows, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import { changeExisting } from './write-objects.ts'

const openUnison = 'com.tremolosecurity.provisioning.tasks'
const rbac = 'rbac.authorization.k8s.io'

interface Stored {
  readonly metadata: {
    readonly uid: string
    readonly resourceVersion: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly data?: Readonly<Record<string, string>>
}

onKubernetes('tasks for Kubernetes objects', (cluster) => {
  let k8s: Target
  beforeAll(async () => {
    const { url, ca, adminToken } = cluster.connection
    const connection = fakeParams({ url, token: adminToken, certificate: ca, timeoutMillis: String(callMillis) })
    k8s = await kubernetes.prepare(connection, noIssues(), fakeParseContext()).create(fakeModuleHost())
  })
  afterAll(() => k8s.close?.())

  async function ran(specs: readonly TaskSpec[], params: Record<string, string> = {}) {
    const log = recordingLogger()
    const fixture = await startWorkflows({ workflows: { w: specs }, targets: { k8s }, log })
    await fixture.run('w', { params })
    return {
      audit: fixture.audit.rows.map(({ action, attribute, value }) => `${action} ${attribute} ${value}`),
      log: log.lines.filter(({ message }) => message.includes('Kubernetes')).map(({ message }) => message),
    }
  }

  const create = (template: string, more: Record<string, string> = {}): TaskSpec =>
    customTask(`${openUnison}.CreateK8sObject`, { targetName: 'k8s', template, srcType: 'yaml', ...more })
  const stored = (path: string) => cluster.must<Stored>('GET', path)

  const namespaceTemplate = `
kind: Namespace
apiVersion: v1
metadata:
  name: "$nameSpace$"
  labels:
    name: "$nameSpace$"
    request-access: $access$
  annotations:
    managedByGit: "$useGit$"
    $gitUrlAnnotation$`
  const bindingTemplate = `
kind: RoleBinding
apiVersion: ${rbac}/v1
metadata:
  name: admin-binding
  namespace: "$nameSpace$"
subjects:
- kind: Group
  name: k8s-namespace-administrators-$cluster$-$nameSpace$
  apiGroup: ${rbac}
roleRef:
  kind: ClusterRole
  name: admin
  apiGroup: ${rbac}`
  const configMap = `
kind: ConfigMap
apiVersion: v1
metadata:
  name: settings
  namespace: $nameSpace$
data:
  value: "$value$"`

  test('a namespace with its RoleBinding is created once, and then replaced only if it differs', async () => {
    const nameSpace = `team-${randomUUID().slice(0, 13)}`
    const binding = `/apis/${rbac}/v1/namespaces/${nameSpace}/rolebindings/admin-binding`
    const tasks = [
      customTask(`${openUnison}.CheckForGit`),
      create(namespaceTemplate, { writeToRequest: '$useGit$', requestAttribute: 'git', path: '/x/$nameSpace$.yaml' }),
      create(bindingTemplate, { targetName: '$cluster$', kind: 'RoleBinding', url: '/ignored' }),
    ]
    const params = { nameSpace, cluster: 'k8s', access: 'true' }
    const first = await ran(tasks, params)
    expect(first.audit).toEqual([
      `add kubernetes-Namespace /api/v1/namespaces/${nameSpace}`,
      `add kubernetes-RoleBinding ${binding}`,
    ])
    const made = await stored(`/api/v1/namespaces/${nameSpace}`)
    expect(made.metadata).toMatchObject({
      labels: { name: nameSpace, 'request-access': 'true' },
      annotations: { managedByGit: 'false' },
    })
    expect(await stored(binding)).toMatchObject({
      subjects: [{ kind: 'Group', name: `k8s-namespace-administrators-k8s-${nameSpace}` }],
    })
    const second = await ran(tasks, params)
    expect(second.audit).toEqual([])
    expect(second.log).toEqual(Array(2).fill('a Kubernetes object already exists as wanted'))
    expect((await stored(`/api/v1/namespaces/${nameSpace}`)).metadata).toEqual(made.metadata)
    const third = await ran(tasks, { ...params, access: 'false' })
    expect(third.audit).toEqual([`replace kubernetes-Namespace /api/v1/namespaces/${nameSpace}`])
    expect(third.log).toEqual(['changed an existing Kubernetes object', 'a Kubernetes object already exists as wanted'])
    expect((await stored(`/api/v1/namespaces/${nameSpace}`)).metadata.labels).toMatchObject({
      'request-access': 'false',
    })
  })

  test('hostile values stay one value', async () => {
    const nameSpace = await cluster.namespace()
    const path = `/api/v1/namespaces/${nameSpace}/configmaps/settings`
    for (const value of [
      'a: b',
      'x"\n  admin: "yes',
      "it's {{ .Values }} ${x} $y$",
      '---\nkind: ClusterRoleBinding',
      '日本語 \u{1f512} \u2028',
      'x'.repeat(5_000),
    ]) {
      await ran([create(configMap)], { nameSpace, value })
      expect((await stored(path)).data).toEqual({ value })
    }
  })

  test.each([
    ['../../kube-system', 'BAD_REQUEST'],
    ['a/b', 'BAD_REQUEST'],
    ['a%2fb', 'BAD_REQUEST'],
    ['..', 'BAD_REQUEST'],
    ['x\ny', 'BAD_REQUEST'],
    ['', 'UNPROCESSABLE'],
    [' ', 'UNPROCESSABLE'],
    ['n'.repeat(300), 'BAD_REQUEST'],
  ])('the name %j is rejected and changes nothing', async (nameSpace, code) => {
    const before = (await cluster.must<{ items: unknown[] }>('GET', '/api/v1/namespaces')).items.length
    await expect(ran([create(namespaceTemplate)], { nameSpace, access: 'x' })).rejects.toMatchObject({ code })
    const remove = customTask(`${openUnison}.DeleteK8sObject`, {
      targetName: 'k8s',
      kind: 'Namespace',
      url: '/api/v1/namespaces/$nameSpace$',
    })
    if (nameSpace === 'x\ny') expect((await ran([remove], { nameSpace })).audit).toEqual([])
    else await expect(ran([remove], { nameSpace })).rejects.toMatchObject({ code })
    expect((await cluster.must<{ items: unknown[] }>('GET', '/api/v1/namespaces')).items.length).toBe(before)
  })

  test('an object is deleted once, and what is not there needs no deletion', async () => {
    const nameSpace = await cluster.namespace()
    await ran([create(configMap)], { nameSpace, value: 'x' })
    const url = '/api/v1/namespaces/$nameSpace$/configmaps/settings'
    const remove = (kind: string) => customTask(`${openUnison}.DeleteK8sObject`, { targetName: 'k8s', kind, url })
    await expect(ran([remove('Secret')], { nameSpace })).rejects.toThrow('is of the kind ConfigMap, not Secret')
    const path = `/api/v1/namespaces/${nameSpace}/configmaps/settings`
    expect(await ran([remove('ConfigMap')], { nameSpace })).toEqual({
      audit: [`delete kubernetes-ConfigMap ${path}`],
      log: ['deleted a Kubernetes object'],
    })
    expect(await ran([remove('ConfigMap')], { nameSpace })).toEqual({
      audit: [],
      log: ['there is no such Kubernetes object to delete'],
    })
    expect((await cluster.call('GET', path)).status).toBe(404)
  })

  test('a label selector deletes what it selects, and its values cannot widen it', async () => {
    const nameSpace = await cluster.namespace()
    const path = `/api/v1/namespaces/${nameSpace}/configmaps`
    for (const [name, owner] of [
      ['a', 'ada'],
      ['b', 'ada'],
      ['c', 'bob'],
    ]) {
      await cluster.must('POST', path, { metadata: { name, labels: { owner } } })
    }
    const remove = customTask(`${openUnison}.DeleteK8sObject`, {
      targetName: 'k8s',
      kind: 'ConfigMap',
      url: '/api/v1/namespaces/$nameSpace$/configmaps?labelSelector=owner%3D$owner$',
    })
    for (const owner of ['ada,owner=bob', '', 'ada)', '!x']) {
      await expect(ran([remove], { nameSpace, owner })).rejects.toMatchObject({ status: owner === '' ? 422 : 400 })
    }
    expect((await ran([remove], { nameSpace, owner: 'ada' })).audit).toEqual([
      `delete kubernetes-ConfigMap ${path}/a`,
      `delete kubernetes-ConfigMap ${path}/b`,
    ])
    expect((await cluster.call('GET', `${path}/c`)).status).toBe(200)
  })

  test('a merge is applied, reported once and repeated without effect', async () => {
    const nameSpace = await cluster.namespace()
    const patch = customTask(`${openUnison}.PatchK8sObject`, {
      targetName: 'k8s',
      kind: 'Namespace',
      url: '/api/v1/namespaces/$nameSpace$',
      template: '{"metadata": {"annotations": {"server": "$server$"}}}',
    })
    const params = { nameSpace, server: 'a"}},"x":{' }
    const change = `replace kubernetes-Namespace /api/v1/namespaces/${nameSpace}`
    expect((await ran([patch], params)).audit).toEqual([change])
    expect((await ran([patch], params)).audit).toEqual([])
    const { metadata } = await stored(`/api/v1/namespaces/${nameSpace}`)
    expect(metadata.annotations).toEqual({ server: 'a"}},"x":{' })
    await expect(ran([patch], { ...params, nameSpace: `${nameSpace}-absent` })).rejects.toThrow('does not exist')
  })

  test('operations of a JSON patch are applied once in every run', async () => {
    const nameSpace = await cluster.namespace()
    const path = `/api/v1/namespaces/${nameSpace}/serviceaccounts/app`
    await cluster.serviceAccount({ namespace: nameSpace, name: 'app' })
    const patch = customTask(`${openUnison}.PatchK8sObject`, {
      targetName: 'k8s',
      kind: 'ServiceAccount',
      url: '/api/v1/namespaces/$nameSpace$/serviceaccounts/app',
      patchType: 'json',
      template: '- {op: add, path: /imagePullSecrets, value: [{name: "$secret$"}]}',
    })
    const change = `replace kubernetes-ServiceAccount ${path}`
    expect((await ran([patch], { nameSpace, secret: 'pull' })).audit).toEqual([change])
    expect(await stored(path)).toMatchObject({ imagePullSecrets: [{ name: 'pull' }] })
    expect((await ran([patch], { nameSpace, secret: 'pull-2' })).audit).toEqual([change])
    expect(await stored(path)).toMatchObject({ imagePullSecrets: [{ name: 'pull-2' }] })
  })

  test('a second attempt of the same step does not repeat operations', async () => {
    const nameSpace = await cluster.namespace()
    await cluster.serviceAccount({ namespace: nameSpace, name: 'app' })
    const what = {
      kind: 'ServiceAccount',
      resource: { group: '', version: 'v1', plural: 'serviceaccounts', namespace: nameSpace },
      name: 'app',
    }
    const { request, changes } = targetFixture(k8s, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })
    const attempt = (idempotencyKey: string) => {
      const content = [
        { op: 'add', path: '/imagePullSecrets', value: [{ name: 'first' }] },
        { op: 'add', path: '/imagePullSecrets/-', value: { name: idempotencyKey } },
      ]
      const step = { target: 'k8s', api: objectsOf({ get: () => k8s }, 'k8s'), request: { ...request, idempotencyKey } }
      return changeExisting(step, what, { patch: { type: 'json', content } })
    }
    await attempt('run-1/1')
    await attempt('run-1/1')
    expect(changes).toHaveLength(1)
    await attempt('run-1/2')
    expect(changes).toHaveLength(2)
    expect(await stored(`/api/v1/namespaces/${nameSpace}/serviceaccounts/app`)).toMatchObject({
      metadata: { annotations: { 'gatehouse.dev/last-patch': 'run-1/2' } },
      imagePullSecrets: [{ name: 'first' }, { name: 'run-1/2' }],
    })
  })

  test('an existing object can be patched instead of replaced', async () => {
    const nameSpace = await cluster.namespace({ keep: 'me' })
    const task = create(namespaceTemplate, {
      patchTemplate: 'metadata: {labels: {patched: "$access$"}}',
      patchType: 'merge',
    })
    await ran([task], { nameSpace, access: 'x' })
    expect((await stored(`/api/v1/namespaces/${nameSpace}`)).metadata.labels).toMatchObject({
      keep: 'me',
      patched: 'x',
    })
  })

  test('what a task cannot do is said', async () => {
    const nameSpace = await cluster.namespace()
    const params = { nameSpace, access: 'x', value: 'v' }
    await expect(
      ran([create(namespaceTemplate, { writeToRequest: '$git$' })], { ...params, git: 'TRUE' }),
    ).rejects.toThrow('cannot be written to Git')
    await expect(ran([create(namespaceTemplate, { targetName: '$c$' })], { ...params, c: 'none' })).rejects.toThrow(
      'there is no target "none"',
    )
    await expect(ran([create('{apiVersion: v9, kind: X, metadata: {name: x}}')], params)).rejects.toThrow('no kind X')
    await expect(ran([create('{apiVersion: v1, kind: Secret, metadata: {name: x}}')], params)).rejects.toThrow(
      'needs metadata.namespace',
    )
    await expect(ran([create(configMap.replace('\ndata:', '\nnonsense:'))], params)).rejects.toThrow('unknown field')
  })

  test('other tasks find kinds and values', async () => {
    const nameSpace = await cluster.namespace()
    await ran([create(configMap)], { nameSpace, value: 'from the cluster' })
    const copy = configMap.replace('settings', 'copy').replace('$value$', '$loaded$ $label_clean$')
    await ran(
      [
        customTask(`${openUnison}.LoadConfigMap`, {
          target: 'k8s',
          namespace: '$nameSpace$',
          configmap: 'settings',
          mapping: ['loaded=value', 'other=absent'],
        }),
        customTask(`${openUnison}.CleanLabels`, {
          attributes: 'label',
          newAttributeSuffix: '_clean',
          replacementCharacter: '-',
        }),
        ...(['apps/v1', 'apps/v9'] as const).map((apiGroup) =>
          customTask(`${openUnison}.CheckApiExists`, {
            cluster: 'k8s',
            apiGroup,
            apiKind: 'Deployment',
            attribute: apiGroup.replace('/', ''),
          }),
        ),
        { taskType: 'ifAttrExists', name: 'appsv1', onSuccess: [create(copy)] },
        { taskType: 'ifAttrExists', name: 'appsv9', onSuccess: [create(copy.replace('copy', 'never'))] },
      ],
      { nameSpace, label: '_a b!' },
    )
    expect((await stored(`/api/v1/namespaces/${nameSpace}/configmaps/copy`)).data).toEqual({
      value: 'from the cluster x-a-b-x',
    })
    expect((await cluster.call('GET', `/api/v1/namespaces/${nameSpace}/configmaps/never`)).status).toBe(404)
  })

  const openShift = 'com.tremolosecurity.unison.openshiftv3.tasks'
  const projectGroup = 'project.openshift.io'
  const createProject = customTask(`${openShift}.CreateProject`, {
    targetName: 'k8s',
    template: '{"kind":"ProjectRequest","apiVersion":"v1","metadata":{"name":"$project$","creationTimestamp":null}}',
  })

  test('a project is requested once; a cluster without the OpenShift API is named', async () => {
    const project = `project-${randomUUID().slice(0, 13)}`
    await expect(ran([createProject], { project })).rejects.toThrow(
      'target "k8s" is not an OpenShift cluster: it has no kind ProjectRequest in project.openshift.io/v1',
    )
    for (const [plural, kind] of [
      ['projects', 'Project'],
      ['projectrequests', 'ProjectRequest'],
    ] as const) {
      const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
      const definition = {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `${plural}.${projectGroup}` },
        spec: {
          group: projectGroup,
          scope: 'Cluster',
          names: { plural, singular: kind.toLowerCase(), kind },
          versions: [{ name: 'v1', served: true, storage: true, schema }],
        },
      }
      await cluster.defineKind(definition, `/apis/${projectGroup}/v1/${plural}`)
    }
    const path = `/apis/${projectGroup}/v1/projects`
    expect((await ran([createProject], { project })).audit).toEqual([`add kubernetes-Project ${path}/${project}`])
    expect(await stored(`/apis/${projectGroup}/v1/projectrequests/${project}`)).toMatchObject({
      apiVersion: `${projectGroup}/v1`,
      kind: 'ProjectRequest',
    })
    // OpenShift creates the project that was requested; a definition only stores the request.
    await cluster.must('POST', path, {
      apiVersion: `${projectGroup}/v1`,
      kind: 'Project',
      metadata: { name: project, labels: { kept: 'true' } },
    })
    expect(await ran([createProject], { project })).toEqual({ audit: [], log: ['a Kubernetes object already exists'] })
    expect((await stored(`${path}/${project}`)).metadata.labels).toEqual({ kept: 'true' })
    await expect(ran([createProject], { project: 'a/b' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(ran([createProject], {})).rejects.toMatchObject({ code: 'UNPROCESSABLE' })
  })

  test('a group becomes a subject of a RoleBinding once, and others stay', async () => {
    const project = await cluster.namespace()
    const path = `/apis/${rbac}/v1/namespaces/${project}/rolebindings`
    const add = customTask(`${openShift}.AddGroupToRole`, {
      targetName: 'k8s',
      projectName: '$project$',
      groupName: 'view-$project$',
      roleName: 'view',
    })
    await expect(ran([add], { project })).rejects.toThrow(`${path}/view does not exist`)
    const user = { kind: 'User', name: 'ada', apiGroup: rbac }
    await cluster.must('POST', path, {
      metadata: { name: 'view' },
      subjects: [user],
      roleRef: { kind: 'ClusterRole', name: 'view', apiGroup: rbac },
    })
    expect((await ran([add], { project })).audit).toEqual([`replace kubernetes-RoleBinding ${path}/view`])
    const group = { kind: 'Group', name: `view-${project}`, apiGroup: rbac }
    expect(await stored(`${path}/view`)).toMatchObject({ subjects: [user, group] })
    expect((await ran([add], { project })).audit).toEqual([])
    expect(await stored(`${path}/view`)).toMatchObject({ subjects: [user, group] })
  })

  const argoCd = 'com.tremolosecurity.argocd.tasks'

  test('policies of Argo CD are added once, and a value cannot add others', async () => {
    const namespace = await cluster.namespace()
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    const policy = async () => (await stored(`${path}/argocd-rbac-cm`)).data?.['policy.csv']
    const add = (toAdd: string) => customTask(`${argoCd}.AddtoRBAC`, { k8sTarget: 'k8s', namespace, toAdd })
    const lines = add(`
      p, role:$nameSpace$-dev, applications, get, $nameSpace$/*, allow

      p,role:$nameSpace$-dev,projects,get,$nameSpace$,allow
      g, k8s-namespace-developer-$nameSpace$, role:$nameSpace$-dev
    `)
    await expect(ran([lines], { nameSpace: 'blue' })).rejects.toThrow('argocd-rbac-cm does not exist')
    await cluster.must('POST', path, { metadata: { name: 'argocd-rbac-cm' } })
    expect((await ran([lines], { nameSpace: 'blue' })).audit).toEqual([
      `replace kubernetes-ConfigMap ${path}/argocd-rbac-cm`,
    ])
    const blue = [
      'p, role:blue-dev, applications, get, blue/*, allow',
      'p, role:blue-dev, projects, get, blue, allow',
      'g, k8s-namespace-developer-blue, role:blue-dev\n',
    ].join('\n')
    expect(await policy()).toBe(blue)
    expect((await ran([lines], { nameSpace: 'blue' })).audit).toEqual([])
    await ran([lines], { nameSpace: 'red' })
    expect(await policy()).toBe(`${blue}${blue.replaceAll('blue', 'red')}`)
    for (const nameSpace of ['x, role:admin', 'x\ng, ada, role:admin', '*', 'a/b', '"x"', '#', 'a?', '{a', ' x']) {
      await expect(ran([lines], { nameSpace }), nameSpace).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    for (const nameSpace of ['admin', 'readonly']) {
      for (const line of ['g, team, role:$nameSpace$', 'p, role:$nameSpace$, applications, get, blue/*, allow']) {
        await expect(ran([add(line)], { nameSpace }), line).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      }
    }
    await ran([add('g, $nameSpace$-admins, role:readonly')], { nameSpace: 'blue' })
    await expect(ran([lines], {})).rejects.toMatchObject({ code: 'UNPROCESSABLE' })
    const { metadata, data } = await stored(`${path}/argocd-rbac-cm`)
    const regex = { metadata, data: { ...data, 'policy.matchMode': 'regex' } }
    await cluster.must('PUT', `${path}/argocd-rbac-cm`, regex)
    await expect(ran([lines], { nameSpace: 'a.b' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await ran([add('g, $group$, role:blue-dev')], { group: '/teams/a.b c' })
    expect(await policy()).toContain('\ng, /teams/a.b c, role:blue-dev\n')
  })

  test('a repository of Argo CD is a Secret for each address, and its key is nowhere else', async () => {
    const namespace = await cluster.namespace()
    const add = customTask(`${argoCd}.CreateGitRepository`, {
      type: 'git',
      name: '$nameSpace$-build',
      repoUrl: '$gitSshInternalURL$',
      sshPrivateKey: '$gitPrivateKey$',
      target: 'k8s',
      namespace,
    })
    const given = { nameSpace: 'blue', gitSshInternalURL: 'git@git.corp.test:blue/build.git', gitPrivateKey: 'k1' }
    const first = await ran([add], given)
    const [, path = ''] = /^add kubernetes-Secret (\S+)$/.exec(first.audit.join()) ?? []
    const decoded = async () =>
      Object.fromEntries(
        Object.entries((await stored(path)).data ?? {}).map(([name, text]) => [
          name,
          Buffer.from(text, 'base64').toString(),
        ]),
      )
    expect((await stored(path)).metadata.labels).toEqual({ 'argocd.argoproj.io/secret-type': 'repository' })
    expect(await decoded()).toEqual({
      type: 'git',
      name: 'blue-build',
      url: 'git@git.corp.test:blue/build.git',
      sshPrivateKey: 'k1',
    })
    expect((await ran([add], given)).audit).toEqual([])
    expect((await ran([add], { ...given, gitPrivateKey: 'k2' })).audit).toEqual([`replace kubernetes-Secret ${path}`])
    expect(await decoded()).toMatchObject({ sshPrivateKey: 'k2' })
    expect((await ran([add], { ...given, gitSshInternalURL: 'git@git.corp.test:red.git' })).audit[0]).not.toContain(
      path,
    )
    await expect(ran([add], { ...given, gitSshInternalURL: 'a\nb' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })
})
