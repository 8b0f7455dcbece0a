import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { parseHostPort } from '#kernel/address.ts'
import { defineAll, defineFiles } from '#testing/kubernetes/custom-resources.ts'
import { chartFolder, chartProfiles, findObject, Helm, type Manifest } from '#testing/kubernetes/helm-chart.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'

const program = inject('helm')
const definitions = inject('definitions')
const helm = new Helm(program ?? '')
const everything = { files: [`${chartFolder}/ci/everything-values.yaml`] }
const none = { files: [] }

const shared = ['--set', 'database.secretName=db', '--set', 'secretKey.secretName=key']
const scaled = [...shared, '--set', 'autoscaling.enabled=true']
const trusting = ['--set', 'trustedProxies={10.0.0.0/8}']
const monitored = ['--set-json', 'networkPolicy.monitoring=[{"podSelector":{}}]']
const url = ['--set', 'url=https://gateway.example.com:8443']

const specOf = (objects: readonly Manifest[], kind: string): unknown => findObject(objects, kind)['spec']

interface Alert {
  readonly alert: string
  readonly labels: Readonly<Record<string, string>>
}
interface Alerts {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Alert[] }[]
}

describe.skipIf(program === undefined)('the options of the chart', () => {
  test.each(chartProfiles.filter(({ name }) => name !== 'everything'))(
    'make nothing unless they are chosen: $name',
    async ({ files }) => {
      const kinds = (await helm.render('gatehouse', { files })).map(({ kind }) => kind)
      const optional =
        /^(?:Ingress|HTTPRoute|HorizontalPodAutoscaler|PodMonitor|PrometheusRule|CustomResourceDefinition)$/
      expect(kinds.filter((kind) => optional.test(kind))).toEqual([])
      expect(kinds.filter((kind) => kind === 'ConfigMap').length).toBe(1)
    },
  )

  test.each([
    [{ fullnameOverride: 'portal' }, 'portal', 'gatehouse'],
    [{ nameOverride: 'portal' }, 'gatehouse-portal', 'portal'],
    [{ nameOverride: 'portal', fullnameOverride: 'idp' }, 'idp', 'portal'],
    // YAML would read them as numbers and truth values.
    [{ fullnameOverride: '12' }, '12', 'gatehouse'],
    [{ nameOverride: '12', fullnameOverride: 'true' }, 'true', '12'],
    [{ fullnameOverride: `${'a'.repeat(51)}-${'b'.repeat(40)}` }, 'a'.repeat(51), 'gatehouse'],
  ])('all names follow %j', async (values, fullname, name) => {
    const given = Object.entries(values).flatMap(([key, value]) => ['--set-string', `${key}=${value}`])
    const objects = await helm.render('gatehouse', everything, ...given)
    const own = objects.filter(({ kind, metadata }) => {
      const isOther = kind === 'CustomResourceDefinition' || metadata.name.endsWith('-publisher')
      return !isOther && metadata.name !== `${fullname}-notes`
    })
    const expected = new RegExp(`^(?:gatehouse-)?${fullname}(?:-[a-z]+)?$`)
    expect(own.filter(({ metadata }) => !expected.test(metadata.name) || metadata.name.length > 63)).toEqual([])
    const labels = { 'app.kubernetes.io/name': name, 'app.kubernetes.io/instance': 'gatehouse' }
    expect(objects.filter(({ kind }) => kind === 'Service')).not.toEqual([])
    for (const { spec } of objects.filter(({ kind }) => kind === 'Service')) {
      expect(spec).toMatchObject({ selector: labels })
    }
    expect(specOf(objects, 'Deployment')).toMatchObject({
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { serviceAccountName: fullname } },
    })
    expect(specOf(objects, 'HorizontalPodAutoscaler')).toMatchObject({ scaleTargetRef: { name: fullname } })
  })

  test.each([
    ['0.0.0.0', '0.0.0.0'],
    ['::', '[::]'],
    ['[::]', '[::]'],
    ['fd00::1', '[fd00::1]'],
  ])('listenAddress %s is an address that the gateway reads, in every listener', async (given, host) => {
    const { files } = chartProfiles.find((profile) => profile.name === 'sts') ?? none
    const objects = await helm.render('gatehouse', { files }, '--set-string', `listenAddress=${given}`)
    const { template } = specOf(objects, 'Deployment') as { template: { spec: { containers: { args: string[] }[] } } }
    const args = template.spec.containers[0]?.args ?? []
    const listeners = args.flatMap((arg) => /^--(?:listen|metrics)=(.*)$/.exec(arg)?.[1] ?? [])
    const config = findObject(objects, 'ConfigMap')['data'] as Readonly<Record<string, string>>
    const { sts } = parse(config['sts.yaml'] ?? '')
    listeners.push(sts.injector.webhook.listen)
    expect(listeners).toEqual([`${host}:8080`, `${host}:8081`, `${host}:8443`])
    const hosts = listeners.map((listener) => parseHostPort(listener).host)
    expect(new Set(hosts)).toEqual(new Set([host.replace(/^\[|\]$/g, '')]))
  })

  test.each([
    [
      'an Ingress, unless a choice of proxies is made',
      [...url, '--set', 'ingress.enabled=true'],
      /trustedProxies: ingress\.enabled/,
    ],
    [
      'a route likewise',
      [...url, '--set', 'httpRoute.enabled=true', '--set', 'httpRoute.parentRefs[0].name=a'],
      /trustedProxies: httpRoute\.enabled/,
    ],
    ['an Ingress without a host', [...trusting, '--set', 'ingress.enabled=true'], /ingress\.hosts: neither it nor url/],
    [
      'a route of no Gateway',
      [...trusting, ...url, '--set', 'httpRoute.enabled=true'],
      /httpRoute\.parentRefs: name the Gateway/,
    ],
    [
      'an autoscaler of the embedded database',
      ['--set', 'autoscaling.enabled=true'],
      /autoscaling\.enabled: the embedded database serves one replica/,
    ],
    [
      'an autoscaler beside a number of replicas',
      [...scaled, '--set', 'replicas=3'],
      /replicas: the autoscaler decides/,
    ],
    [
      'fewer replicas at most than at least',
      [...scaled, '--set', 'autoscaling.maxReplicas=1'],
      /minReplicas: 2 is more than maxReplicas, which is 1/,
    ],
    [
      'a share of no request',
      [...scaled, '--set-json', 'resources.requests.cpu=null'],
      /resources\.requests\.cpu, which is not set/,
    ],
    [
      'nothing to scale by',
      [...scaled, '--set-json', 'autoscaling.targetCPUUtilizationPercentage=null'],
      /there is nothing to scale by/,
    ],
    [
      'a monitor that the network policy keeps out',
      ['--set', 'metrics.podMonitor.enabled=true'],
      /name the namespace of your Prometheus in networkPolicy\.monitoring/,
    ],
    [
      'an alert that does not exist',
      ['--set', 'metrics.prometheusRule.enabled=true', '--set', 'metrics.prometheusRule.disabled={GatehouseSlwo}'],
      /there is no alert GatehouseSlwo; there are .*GatehouseSlow/,
    ],
    [
      'a label that selectors go by',
      ['--set', 'commonLabels.app\\.kubernetes\\.io/name=other'],
      /app\.kubernetes\.io\/name is set by the chart/,
    ],
    [
      'one of pods likewise',
      ['--set', 'podLabels.app\\.kubernetes\\.io/instance=other'],
      /app\.kubernetes\.io\/instance is set by the chart/,
    ],
    [
      'a container with the name of the gateway',
      ['--set-json', 'extraContainers=[{"name":"gatehouse","image":"a"}]'],
      /extraContainers: the name gatehouse is taken/,
    ],
  ])('reject %s', async (_, values, complaint) => {
    await expect(helm.render('gatehouse', none, ...values)).rejects.toThrow(complaint)
  })

  test.each([
    'ingress.host=a.example.com',
    'ingress.hosts={https://a.example.com}',
    'ingress.tls[0].secret=a',
    'httpRoute.parentRefs[0].gateway=a',
    'httpRoute.timeouts.requests=1s',
    'autoscaling.min=2',
    'autoscaling.minReplicas=0',
    'autoscaling.behavior.scaledown.policies=a',
    'metrics.serviceMonitor.enabled=true',
    'metrics.podMonitor.interval=often',
    'metrics.prometheusRule.label=a',
    'metrics.dashboard.folder=a',
    'auditKey.secret=a',
    'crds.enabled=true',
    'commonLabels=a',
    'topologySpreadConstraints[0].key=zone',
    'extraContainers.name=a',
    'sidecars[0].name=a',
  ])('reject the misspelt %s', async (value) => {
    const path = value.split(/[.[=]/)
    const complaint = new RegExp(`don't meet the specifications[^]*${path[0]}`)
    await expect(helm.render('gatehouse', none, '--set', value)).rejects.toThrow(complaint)
  })

  test('lead the host of url, and issuers that are served here, to the public listener', async () => {
    const objects = await helm.render('gatehouse', everything)
    const hosts = ['gateway.example.com', 'issuer.example.com']
    const backend = { service: { name: 'gatehouse', port: { number: 80 } } }
    expect(findObject(objects, 'Service')['spec']).toMatchObject({ ports: [{ port: 80, targetPort: 'public' }] })
    expect(specOf(objects, 'Ingress')).toEqual({
      ingressClassName: 'nginx',
      tls: [{ secretName: 'gateway-example-com', hosts }],
      rules: hosts.map((host) => ({ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } })),
    })
    expect(specOf(objects, 'HTTPRoute')).toMatchObject({
      parentRefs: [{ name: 'public', namespace: 'gateways', sectionName: 'https' }],
      hostnames: hosts,
      rules: [{ timeouts: { request: '60s' }, backendRefs: [{ name: 'gatehouse', port: 80 }] }],
    })
  })

  test('lead given hosts instead, and to the port that the Service has', async () => {
    const more = [
      '--set',
      'ingress.enabled=true',
      '--set',
      'ingress.hosts={a.example.com}',
      '--set',
      'service.port=8000',
    ]
    expect(specOf(await helm.render('gatehouse', none, ...trusting, ...url, ...more), 'Ingress')).toEqual({
      rules: [expect.objectContaining({ host: 'a.example.com' })],
    })
    const ported = await helm.render('gatehouse', none, ...trusting, ...url, '--set', 'ingress.enabled=true')
    expect(specOf(ported, 'Ingress')).toMatchObject({ rules: [{ host: 'gateway.example.com' }] })
    expect(JSON.stringify(specOf(await helm.render('gatehouse', none, ...trusting, ...more), 'Ingress'))).toContain(
      '8000',
    )
  })

  test('leave the number of replicas to the autoscaler, which counts the load of the gateway alone', async () => {
    const objects = await helm.render('gatehouse', everything)
    expect(specOf(objects, 'Deployment')).not.toHaveProperty('replicas')
    expect(specOf(objects, 'HorizontalPodAutoscaler')).toMatchObject({
      scaleTargetRef: {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        name: findObject(objects, 'Deployment').metadata.name,
      },
      minReplicas: 3,
      maxReplicas: 10,
      metrics: [{ type: 'ContainerResource', containerResource: { container: 'gatehouse' } }, { type: 'Pods' }],
      behavior: { scaleDown: { stabilizationWindowSeconds: 600 } },
    })
    expect(findObject(objects, 'PodDisruptionBudget')).toBeDefined()
    const single = await helm.render('gatehouse', none, ...scaled, '--set', 'autoscaling.minReplicas=1')
    expect(single.filter(({ kind }) => kind === 'PodDisruptionBudget')).toEqual([])
  })

  test('scrape the pods of the release by the port of metrics, from any namespace', async () => {
    const elsewhere = ['--set', 'metrics.podMonitor.namespace=monitoring', '--set', 'metrics.podMonitor.enabled=true']
    for (const more of [[], elsewhere]) {
      const profile = more.length === 0 ? everything : none
      const objects = await helm.render('identity', profile, ...monitored, ...more)
      // The alert GatehouseDown looks for such a job.
      const relabelings = expect.arrayContaining([{ action: 'replace', targetLabel: 'job', replacement: 'gatehouse' }])
      const { template } = specOf(objects, 'Deployment') as {
        template: Manifest & { spec: { containers: { ports: object[] }[] } }
      }
      const { selector, ...spec } = specOf(objects, 'PodMonitor') as { selector: { matchLabels: object } }
      expect(template.metadata).toMatchObject({ labels: selector.matchLabels })
      expect(template.spec.containers[0]?.ports).toContainEqual({ name: 'operations', containerPort: 8081 })
      expect(spec).toMatchObject({
        namespaceSelector: { matchNames: ['identity'] },
        podMetricsEndpoints: [{ port: 'operations', path: '/metrics', interval: '30s', relabelings }],
      })
      expect(findObject(objects, 'PodMonitor').metadata).toMatchObject(
        more.length === 0
          ? { namespace: 'identity', name: 'gatehouse' }
          : { namespace: 'monitoring', name: 'identity-gatehouse' },
      )
    }
  })

  test('have the alerts of deploy/prometheus and the dashboard of deploy/grafana, as they are', async () => {
    const source = parse(readFileSync('deploy/prometheus/alerts.yaml', 'utf8')) as Alerts
    const alone = ['--set', 'metrics.prometheusRule.enabled=true', '--set', 'metrics.dashboard.enabled=true']
    const objects = await helm.render('gatehouse', none, ...alone)
    expect(specOf(objects, 'PrometheusRule')).toEqual(source)
    const dashboard = findObject(objects, 'ConfigMap', 'gatehouse-dashboard') as Manifest & {
      data: Record<string, string>
    }
    expect(dashboard.metadata).toMatchObject({ labels: { grafana_dashboard: '1' } })
    expect(JSON.parse(dashboard.data['gatehouse.json'] ?? '')).toEqual(
      JSON.parse(readFileSync('deploy/grafana/gatehouse.json', 'utf8')),
    )
    const { groups } = specOf(await helm.render('gatehouse', everything), 'PrometheusRule') as Alerts
    const kept = source.groups.flatMap(({ rules }) => rules).filter(({ alert }) => alert !== 'GatehouseTracesDropped')
    expect(groups.flatMap(({ rules }) => rules)).toEqual(
      kept.map((rule) => ({ ...rule, labels: { ...rule.labels, team: 'identity' } })),
    )
  })

  test('give every object the common labels and annotations, and selectors none of them', async () => {
    for (const { kind, metadata, ...object } of await helm.render('gatehouse', everything)) {
      if (metadata.name === 'gatehouse-notes') continue
      expect({ kind, ...metadata }).toMatchObject({
        labels: { 'app.kubernetes.io/part-of': 'identity', 'cost-center': '4711' },
        annotations: { 'example.com/owner': 'identity' },
      })
      expect(JSON.stringify((object['spec'] as { selector?: object } | undefined)?.selector ?? {})).not.toContain(
        'cost-center',
      )
    }
  })

  test('reach the pod: audit key, containers, environment, places', async () => {
    const { template } = specOf(await helm.render('gatehouse', everything), 'Deployment') as { template: Manifest }
    const labels = { 'app.kubernetes.io/name': 'gatehouse', 'app.kubernetes.io/instance': 'gatehouse' }
    expect(template.metadata).toMatchObject({
      labels: { ...labels, zone: 'internal', 'cost-center': '4711' },
      annotations: { 'example.com/scanned': 'true' },
    })
    const key = { secretKeyRef: { name: 'gatehouse-audit-key', key: 'key' } }
    const env = expect.arrayContaining([
      { name: 'GATEHOUSE_AUDIT_KEY', valueFrom: key },
      { name: 'TZ', value: 'Europe/Berlin' },
    ])
    expect(template['spec']).toMatchObject({
      initContainers: [{ name: 'wait' }],
      containers: [
        { name: 'gatehouse', env, envFrom: [{ secretRef: { name: 'more', optional: true } }] },
        { name: 'database-proxy', volumeMounts: [{ name: 'shared' }] },
      ],
      hostAliases: [{ ip: '192.0.2.7' }],
      priorityClassName: 'system-cluster-critical',
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [{ key: 'identity' }],
      affinity: { nodeAffinity: expect.anything() },
      topologySpreadConstraints: [
        { topologyKey: 'topology.kubernetes.io/zone', labelSelector: { matchLabels: labels } },
      ],
    })
  })

  test('keep names that YAML would read as numbers or truth', async () => {
    const names = {
      'database.secretName': '12',
      'secretKey.secretName': '0x10',
      'auditKey.secretName': '1e3',
      'auditKey.key': '7',
      'tls.secretName': 'true',
      trustConfigMap: '1.5',
      priorityClassName: 'false',
    }
    const args = Object.entries(names).flatMap(([name, value]) => ['--set-string', `${name}=${value}`])
    const spec = JSON.stringify(specOf(await helm.render('gatehouse', none, ...args), 'Deployment'))
    for (const name of Object.values(names)) expect(spec).toContain(`:"${name}"`)
  })

  test('spread pods as given, by default over nodes', async () => {
    const spreadOf = async (...args: string[]): Promise<unknown> => {
      const { template } = specOf(await helm.render('gatehouse', none, ...args), 'Deployment') as { template: Manifest }
      return (template['spec'] as Readonly<Record<string, unknown>>)['topologySpreadConstraints']
    }
    expect(await spreadOf()).toMatchObject([{ topologyKey: 'kubernetes.io/hostname', maxSkew: 1 }])
    expect(await spreadOf('--set-json', 'topologySpreadConstraints=[]')).toBeUndefined()
    const own =
      '{"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"a":"b"}}}'
    expect(await spreadOf('--set-json', `topologySpreadConstraints=[${own}]`)).toEqual([JSON.parse(own)])
  })
})

onKubernetes('the options of the chart on a real API server', (cluster) => {
  describe.skipIf(program === undefined || definitions === undefined)('installed with all of them', () => {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/reports.openunison.tremolo.io'
    let namespace = ''
    const release = (command: string, ...args: string[]): Promise<string> =>
      helm.run(command, 'gatehouse', '--namespace', namespace, '--kubeconfig', cluster.connection.kubeconfig, ...args)
    const change = (command: string, ...args: string[]): Promise<string> =>
      release(
        command,
        chartFolder,
        ...everything.files.flatMap((file) => ['--values', file]),
        '--take-ownership',
        ...args,
      )

    /** The definition as an earlier version of the chart might have had it. */
    async function outdate(): Promise<void> {
      const description = {
        path: '/spec/versions/0/schema/openAPIV3Schema/description',
        value: 'of an earlier version',
      }
      const patch = [{ op: 'add', ...description }]
      expect(await cluster.call('PATCH', path, patch, undefined, 'application/json-patch+json')).toMatchObject({
        status: 200,
      })
    }
    const isOutdated = async (): Promise<boolean> =>
      JSON.stringify(await cluster.must('GET', path)).includes('of an earlier version')

    beforeAll(async () => {
      await defineFiles(cluster, definitions ?? [])
      await defineAll(cluster)
      namespace = await cluster.namespace({ 'pod-security.kubernetes.io/enforce': 'restricted' })
    }, 60_000)
    afterAll(() => release('uninstall').catch(() => {}), 60_000)

    test('its definitions are adopted, changed by helm upgrade, and stay', { timeout: 120_000 }, async () => {
      await outdate()
      // What helm does without the value: definitions that are there are left alone.
      await change('install', '--set', 'crds.upgrade=false')
      expect(await isOutdated()).toBe(true)
      await change('upgrade')
      expect(await isOutdated()).toBe(false)
      await outdate()
      await change('upgrade')
      expect(await isOutdated()).toBe(false)
      expect(await cluster.must('GET', path)).toMatchObject({
        metadata: { annotations: { 'helm.sh/resource-policy': 'keep', 'meta.helm.sh/release-namespace': namespace } },
      })
      for (const api of ['networking.k8s.io/v1', 'gateway.networking.k8s.io/v1', 'autoscaling/v2']) {
        const plural = { networking: 'ingresses', gateway: 'httproutes', autoscaling: 'horizontalpodautoscalers' }[
          api.split(/[./]/)[0] ?? ''
        ]
        expect((await cluster.call('GET', `/apis/${api}/namespaces/${namespace}/${plural}/gatehouse`)).status).toBe(200)
      }
      for (const plural of ['podmonitors', 'prometheusrules']) {
        const stored = `/apis/monitoring.coreos.com/v1/namespaces/${namespace}/${plural}/gatehouse`
        expect((await cluster.call('GET', stored)).status).toBe(200)
      }
      await release('uninstall')
      expect((await cluster.call('GET', path)).status).toBe(200)
    })

    test('helm show crds has what kubectl apply --server-side --force-conflicts changes them by', async () => {
      const shown = parseAllDocuments(await helm.run('show', 'crds', chartFolder)).map((one) => one.toJS() as Manifest)
      const definition = shown.find(({ metadata }) => path.endsWith(metadata.name))
      expect(shown.length).toBe(readdirSync('deploy/crds').length)
      await outdate()
      const apply = (query: string) =>
        cluster.call(
          'PATCH',
          `${path}?fieldManager=kubectl${query}`,
          definition,
          undefined,
          'application/apply-patch+yaml',
        )
      expect(await apply('')).toMatchObject({ status: 409, body: { message: expect.stringContaining('conflict') } })
      expect(await isOutdated()).toBe(true)
      expect((await apply('&force=true')).status).toBe(200)
      expect(await isOutdated()).toBe(false)
    })
  })
})
