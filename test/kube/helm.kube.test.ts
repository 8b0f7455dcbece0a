import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { parse } from 'yaml'
import { catalog } from '#catalog/catalog.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { loadConfiguration } from '#config/load/load.ts'
import type { Pod } from '#protocols/admission/pod.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { defineFiles } from '#testing/kubernetes/custom-resources.ts'
import {
  chartFolder,
  chartProfiles,
  findObject,
  Helm,
  type Manifest,
  objectPath,
} from '#testing/kubernetes/helm-chart.ts'
import type { KubeClient } from '#testing/kubernetes/kube-client.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { restrictedRules } from '#testing/kubernetes/pod-security.ts'

const program = inject('helm')
const definitions = inject('definitions')
/** Groups whose definitions the cluster lacks where they are not available. */
const ofOthers = /^(?:gateway\.networking\.k8s\.io|monitoring\.coreos\.com)\//
const helm = new Helm(program ?? '')
const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }

interface Deployment extends Manifest {
  readonly spec: { readonly replicas: number; readonly template: Pod }
}

const deploymentIn = (objects: readonly Manifest[]): Deployment => findObject(objects, 'Deployment') as Deployment

/** The configuration folder of the rendered ConfigMap. */
function configurationOf(objects: readonly Manifest[]): string {
  const map = objects.find(({ kind }) => kind === 'ConfigMap')
  const folder = temporaryFolder()
  for (const [name, text] of Object.entries((map?.['data'] ?? {}) as Record<string, string>)) {
    writeFileSync(join(folder, name), text)
  }
  return folder
}

/** A namespace that the chart's values name. Other suites may have it already. */
async function haveNamespace(cluster: KubeClient, name: string): Promise<void> {
  const { status } = await cluster.call('POST', '/api/v1/namespaces', { metadata: { name } })
  expect([201, 409]).toContain(status)
}

describe.skipIf(program === undefined)('the chart', () => {
  test.each(chartProfiles)('helm lint reports nothing: $name', async ({ files }) => {
    const output = await helm.run('lint', chartFolder, '--strict', ...files.flatMap((file) => ['--values', file]))
    expect(output).not.toMatch(/\[(?:WARNING|ERROR)\]/)
  })

  test.each(chartProfiles)('gatehouse check reports nothing about its configuration: $name', async ({ files }) => {
    const folder = configurationOf(await helm.render('gatehouse', { files }))
    const { issues } = await loadConfiguration({ folder, catalog, environment: {} })
    expect(issues.map(formatIssue).filter((line) => !line.includes('there are no YAML files in this folder'))).toEqual(
      [],
    )
  })

  test.each([
    ['replicas=2', /embedded database serves one replica/],
    ['workers=2', /embedded database serves one process/],
    ['database.secretName=db', /share GATEHOUSE_SECRET_KEY too/],
    ['replica=2', /replica/],
    ['sts.endpoint=x', /endpoint/],
    ['webhook.port=80', /port/],
    ['image.digest=latest', /digest/],
    ['serviceAccount.create=false', /serviceAccount\.name is needed/],
    ['url=https://gateway.example.com', /trustedProxies: url is https and tls\.secretName is empty/],
  ])('rejects %s before anything is installed', async (value, complaint) => {
    await expect(helm.render('gatehouse', { files: [] }, '--set', value)).rejects.toThrow(complaint)
  })

  test.each([
    ['trustedProxies={10.0.0.0/8,192.0.2.7}', ['--trusted-proxy=10.0.0.0/8', '--trusted-proxy=192.0.2.7']],
    ['trustedProxies=[]', []],
    ['tls.secretName=gateway-tls', []],
  ])('behind https accepts %s', async (value, expected) => {
    const set = value.endsWith('[]') ? '--set-json' : '--set'
    const more = ['--set', 'url=https://gateway.example.com', set, value]
    const { containers } = deploymentIn(await helm.render('gatehouse', { files: [] }, ...more)).spec.template.spec
    const args = (containers?.[0] as { args?: readonly string[] } | undefined)?.args ?? []
    expect(args.filter((arg) => arg.startsWith('--trusted-proxy'))).toEqual(expected)
  })

  test('rejects an endpoint without rules, and sidecars without https', async () => {
    const files = [`${chartFolder}/ci/predecessor-values.yaml`]
    const noRules = helm.render(
      'gatehouse',
      { files },
      '--set-json',
      'sts.endpoints=[{"name":"a","audience":"a","path":"/a","issuer":{"host":"a.example.com"}}]',
    )
    await expect(noRules).rejects.toThrow(/sts\.endpoints\[0\]\.azRules: endpoint "a" has no rule/)
    await expect(helm.render('gatehouse', { files }, '--set', 'tls.secretName=')).rejects.toThrow(/tokenService/)
  })

  test('accepts an endpoint with grants alone, and gives rights to grants only where an endpoint honors them', async () => {
    const render = (more: object) => {
      const issuer = { host: 'a.example.com' }
      const endpoints = JSON.stringify([{ name: 'a', audience: 'a', path: '/a', issuer, ...more }])
      return helm.render('gatehouse', { files: [] }, '--set-json', `sts.endpoints=${endpoints}`)
    }
    const roles = (objects: readonly Manifest[]) =>
      objects
        .filter((object) => JSON.stringify(object['rules'] ?? []).includes('tokengrants'))
        .map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    const granted = await render({ grants: { namespaces: ['team-*'] } })
    expect(JSON.stringify(granted)).toContain('team-*')
    expect(roles(granted).toSorted()).toEqual([
      'ClusterRole gatehouse-gatehouse',
      'ClusterRole gatehouse-gatehouse-grants',
      'ClusterRole gatehouse-gatehouse-grants-view',
    ])
    const ruled = await render({ azRules: [{ scope: 'filter', constraint: '(saname=a)' }] })
    expect(roles(ruled)).toEqual([])
  })

  test('accepts OpenUnison’s block: its sidecar is reported as unused, its trust moves to the endpoint', async () => {
    const files = [`${chartFolder}/ci/predecessor-values.yaml`]
    const folder = configurationOf(await helm.render('gatehouse', { files }))
    const { sts } = parse(readFileSync(join(folder, 'sts.yaml'), 'utf8'))
    expect(Object.keys(sts).sort()).toEqual(['endpoints', 'injector'])
    expect(sts.endpoints[0]).toMatchObject({
      explicit_certificate_trust: false,
      issuer: { keypair: 'unison-saml2-rp-sig' },
    })
    expect(sts.endpoints[0].injector).not.toHaveProperty('explicit_certificate_trust')
  })

  const published = (place: string): string[] => [
    ...['--set-json', `sts.publish=[${place}]`],
    ...[
      '--set-json',
      'sts.endpoints=[{"name":"a","audience":"a","path":"/a","azRules":[{"scope":"filter","constraint":"(saname=a)"}],"issuer":{"host":"a.example.com"}}]',
    ],
  ]
  const shared = ['--set', 'database.secretName=db', '--set', 'secretKey.secretName=key']
  const mounted = [
    ...['--set-json', 'extraVolumes=[{"name":"site","emptyDir":{}}]'],
    ...['--set-json', 'extraVolumeMounts=[{"name":"site","mountPath":"/srv/issuer/"}]'],
  ]

  test.each([
    ['a folder on no volume', '/srv/issuer', [], /sts\.publish\[0\]\.folder: \/srv\/issuer is on no volume/],
    ['a folder beside a volume', '/srv/issuers', mounted, /\/srv\/issuers is on no volume/],
    ['a relative folder that is lost with the pod', 'issuer', shared, /\/data\/issuer is on no volume/],
  ])('rejects documents in %s', async (_, folder, more, complaint) => {
    const place = JSON.stringify({ type: 'folder', folder })
    await expect(helm.render('gatehouse', { files: [] }, ...published(place), ...more)).rejects.toThrow(complaint)
  })

  test.each([
    ['of the embedded database', 'issuer', []],
    ['that is mounted', '/srv/issuer/a', mounted],
    ['that is mounted, with a PostgreSQL', '/srv/issuer', [...shared, ...mounted]],
  ])('accepts documents in a folder on a volume %s', async (_, folder, more) => {
    const place = JSON.stringify({ type: 'folder', folder })
    expect(await helm.render('gatehouse', { files: [] }, ...published(place), ...more)).not.toEqual([])
  })

  test('creates the namespace of a ConfigMap if configured, and keeps it', async () => {
    const place = '{"type":"configmap","target":"k8s","namespace":"issuer-site","name":"documents"}'
    const without = await helm.render('gatehouse', { files: [] }, ...published(place))
    expect(without.filter(({ kind }) => kind === 'Namespace')).toEqual([])
    const create = ['--set', 'publishing.createNamespaces=true']
    const objects = await helm.render('gatehouse', { files: [] }, ...published(place), ...create)
    expect(objects.filter(({ kind }) => kind === 'Namespace')).toMatchObject([
      { metadata: { name: 'issuer-site', annotations: { 'helm.sh/resource-policy': 'keep' } } },
    ])
    const own = await helm.render('issuer-site', { files: [] }, ...published(place), ...create)
    expect(own.filter(({ kind }) => kind === 'Namespace')).toEqual([])
  })

  test('requests the memory that the gateway uses', async () => {
    const megabytes = 220e6 / 2 ** 20
    for (const { files } of chartProfiles) {
      const [container] = deploymentIn(await helm.render('gatehouse', { files })).spec.template.spec.containers ?? []
      const given = container?.['resources'] as Record<'requests' | 'limits', { memory: string }> | undefined
      expect(Number.parseInt(given?.requests.memory ?? '', 10)).toBeGreaterThan(megabytes)
      expect(Number.parseInt(given?.limits.memory ?? '', 10)).toBeGreaterThan(2 * megabytes)
    }
  })

  test('includes every definition of deploy/crds', async () => {
    const objects = await helm.render('gatehouse', { files: [] }, '--include-crds')
    const brought = objects.filter(({ kind }) => kind === 'CustomResourceDefinition')
    expect(brought.length).toBe(readdirSync('deploy/crds').length)
  })

  test.each(chartProfiles)(
    'grants no star, secrets only by name, and four rights of the cluster: $name',
    async ({ files }) => {
      const roles = (await helm.render('gatehouse', { files })).filter(({ kind }) => kind.endsWith('Role'))
      type Rule = Readonly<Record<'apiGroups' | 'resources' | 'verbs', string[]>> & {
        readonly resourceNames?: string[]
      }
      const rulesOf = (role: Manifest): readonly Rule[] => role['rules'] as Rule[]
      // What administrators of a namespace may do is no right of Gatehouse.
      const own = roles.filter(({ metadata }) => !metadata.name.includes('-grants'))
      for (const rule of own.flatMap(rulesOf)) {
        expect([...rule.apiGroups, ...rule.resources, ...rule.verbs]).not.toContain('*')
        if (rule.resources.includes('secrets'))
          expect(rule).toMatchObject({ verbs: ['get'], resourceNames: expect.anything() })
        expect(rule.verbs).not.toContain('delete')
      }
      const ofCluster = own.filter(({ kind }) => kind === 'ClusterRole').flatMap(rulesOf)
      for (const rule of ofCluster) {
        const isReview = rule.resources.join() === 'tokenreviews' && rule.verbs.join() === 'create'
        const isWebhook = rule.resources.join() === 'mutatingwebhookconfigurations' && rule.resourceNames?.length === 1
        const isAccount = rule.resources.join() === 'serviceaccounts' && rule.verbs.join() === 'get'
        const isEvent = rule.apiGroups.join() === 'events.k8s.io' && rule.verbs.join() === 'create'
        const isGrant =
          rule.apiGroups.join() === 'gatehouse.dev' && /^tokengrants(\/status)?$/.test(rule.resources.join())
        const isNamespace = rule.resources.join() === 'namespaces' && rule.verbs.join() === 'list,watch'
        expect(isReview || isWebhook || isAccount || isEvent || isGrant || isNamespace).toBe(true)
      }
    },
  )
})

onKubernetes('the chart on a real API server', (cluster) => {
  describe.skipIf(program === undefined)('rendered', () => {
    let namespace = ''
    beforeAll(async () => {
      namespace = await cluster.namespace(restricted)
      await cluster.serviceAccount({ namespace, name: 'gatehouse' })
      await haveNamespace(cluster, 'issuer-site')
      await defineFiles(cluster, definitions ?? [])
    }, 60_000)

    test.each(chartProfiles)('every object passes a server-side dry run: $name', async ({ files }) => {
      const objects = await helm.render(namespace, { files })
      expect(objects.length).toBeGreaterThan(4)
      for (const object of objects) {
        if (definitions === undefined && ofOthers.test(object.apiVersion)) continue
        const { status, body } = await cluster.dryRun(objectPath(object, namespace), object)
        const { kind, metadata } = object
        expect({ kind, name: metadata.name, status, body }).toMatchObject({
          status: expect.toSatisfy((s) => s === 200 || s === 201),
        })
      }
    })

    test('every definition passes it too', async () => {
      const objects = await helm.render('default', { files: [] }, '--include-crds')
      for (const object of objects.filter(({ kind }) => kind === 'CustomResourceDefinition')) {
        const { status, body } = await cluster.dryRun(objectPath(object, ''), object)
        expect({ name: object.metadata.name, ok: status < 300, body: status < 300 ? undefined : body }).toMatchObject({
          ok: true,
        })
      }
    })

    test.each(chartProfiles)('its pods are admitted at the restricted level: $name', async ({ files }) => {
      const { template } = deploymentIn(await helm.render(namespace, { files })).spec
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        ...template,
        metadata: { ...template.metadata, name: 'gatehouse-0' },
      }
      const path = `/api/v1/namespaces/${namespace}/pods?dryRun=All&fieldValidation=Strict`
      const { status, body } = await cluster.call<{ message?: string }>('POST', path, pod)
      expect({ status, message: body.message }).toEqual({ status: 201, message: undefined })
      for (const { name, offenders } of restrictedRules)
        expect({ name, offenders: offenders(template) }).toEqual({ name, offenders: [] })
      const [container] = template.spec.containers ?? []
      expect(container).toMatchObject({ securityContext: { readOnlyRootFilesystem: true } })
    })
  })

  describe.skipIf(program === undefined)('installed', () => {
    const files = [`${chartFolder}/values-sts.yaml`, `${chartFolder}/ci/sts-values.yaml`]
    const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations'
    let namespace = ''
    const release = (command: string, ...args: string[]): Promise<string> =>
      helm.run(command, 'gatehouse', '--namespace', namespace, '--kubeconfig', cluster.connection.kubeconfig, ...args)
    const change = (command: string, ...args: string[]): Promise<string> =>
      release(command, chartFolder, '--skip-crds', ...files.flatMap((file) => ['--values', file]), ...args)

    beforeAll(async () => {
      namespace = await cluster.namespace(restricted)
      // The chart's default name would collide with other tests.
      await haveNamespace(cluster, 'issuer-site')
      await change('install')
    }, 60_000)

    afterAll(() => release('uninstall').catch(() => {}), 60_000)

    test('its account may do what Gatehouse does, and no more', async () => {
      const token = await cluster.token({ namespace, name: 'gatehouse' })
      const may = async (verb: string, group: string, resource: string, name = '', within = ''): Promise<boolean> => {
        const review = { spec: { resourceAttributes: { verb, group, resource, name, namespace: within } } }
        const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
        const { body } = await cluster.call<{ status: { allowed: boolean } }>('POST', path, review, token)
        return body.status.allowed
      }
      const own = `${namespace}-gatehouse`
      const webhooks = ['admissionregistration.k8s.io', 'mutatingwebhookconfigurations'] as const
      expect(await may('create', 'authentication.k8s.io', 'tokenreviews')).toBe(true)
      expect(await may('get', ...webhooks, own)).toBe(true)
      expect(await may('update', ...webhooks, own)).toBe(true)
      expect(await may('update', '', 'configmaps', 'issuer-documents', 'issuer-site')).toBe(true)

      expect(await may('get', '', 'serviceaccounts', 'cart', 'shop')).toBe(true)
      expect(await may('create', 'events.k8s.io', 'events', '', 'shop')).toBe(true)
      expect(await may('watch', 'gatehouse.dev', 'tokengrants')).toBe(true)
      expect(await may('watch', '', 'namespaces')).toBe(true)

      expect(await may('create', 'gatehouse.dev', 'tokengrants', '', 'shop')).toBe(false)
      expect(await may('delete', '', 'namespaces', 'shop')).toBe(false)
      expect(await may('list', '', 'serviceaccounts', '', 'shop')).toBe(false)
      expect(await may('delete', 'events.k8s.io', 'events', 'x', 'shop')).toBe(false)
      expect(await may('create', ...webhooks)).toBe(false)
      expect(await may('delete', ...webhooks, own)).toBe(false)
      expect(await may('update', ...webhooks, 'another')).toBe(false)
      expect(await may('list', '', 'secrets', '', namespace)).toBe(false)
      expect(await may('get', '', 'secrets', 'gatehouse-secret-key', namespace)).toBe(false)
      expect(await may('create', '', 'pods', '', namespace)).toBe(false)
      expect(await may('update', '', 'configmaps', 'another', 'issuer-site')).toBe(false)
      expect(await may('create', '', 'serviceaccounts/token', 'gatehouse', namespace)).toBe(false)
    })

    test('a ConfigMap in a missing namespace is rejected, unless the chart creates it', async () => {
      const elsewhere = ['--dry-run=server', '--set', 'sts.publish[0].namespace=issuer-nowhere']
      await expect(change('upgrade', ...elsewhere)).rejects.toThrow(
        /sts\.publish\[0\]\.namespace: there is no namespace issuer-nowhere; create it, or set publishing\.createNamespaces/,
      )
      const created = await change('upgrade', ...elsewhere, '--set', 'publishing.createNamespaces=true')
      expect(created).toMatch(/kind: Namespace\nmetadata:\n {2}name: "issuer-nowhere"/)
      const note =
        'sts.publish[0]: documents are written to the ConfigMap issuer-documents of the namespace issuer-nowhere.'
      expect(created).toContain(note)
    })

    test('an upgrade keeps the webhooks that Gatehouse wrote, and uninstalling removes them', async () => {
      const path = `${configurations}/${namespace}-gatehouse`
      type Written = Manifest & { readonly webhooks?: readonly { readonly name: string }[] }
      const present = await cluster.must<Written>('GET', path)
      expect(present.webhooks).toBeUndefined()
      const webhook = {
        name: 'sts.gatehouse.tremolo.io',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        clientConfig: { url: 'https://127.0.0.1:1/sts/inject' },
        objectSelector: { matchLabels: { 'example.test/nobody': namespace } },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      }
      await cluster.must('PUT', path, { ...present, webhooks: [webhook] })
      await change('upgrade', '--set', 'logLevel=debug')
      expect((await cluster.must<Written>('GET', path)).webhooks).toMatchObject([{ name: webhook.name }])
      const { spec } = await cluster.must<Deployment>(
        'GET',
        `/apis/apps/v1/namespaces/${namespace}/deployments/gatehouse`,
      )
      expect(spec.template.spec.containers?.[0]).toMatchObject({ args: expect.arrayContaining(['--log-level=debug']) })
      await release('uninstall')
      expect((await cluster.call('GET', path)).status).toBe(404)
    })
  })
})
