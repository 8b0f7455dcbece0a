import { describe, expect, test } from 'vitest'
import { parseTemplate } from '#kernel/template.ts'
import { diffToPatch } from '#protocols/admission/admission-review.ts'
import { inject } from '#protocols/admission/inject.ts'
import type { InjectorSettings } from '#protocols/admission/injector-settings.ts'
import type { Container, Pod } from '#protocols/admission/pod.ts'
import { escapeVariables } from '#protocols/admission/sidecar-container.ts'
import { restrictedRules } from '#testing/kubernetes/pod-security.ts'
import {
  awsEndpoint,
  cartAccount,
  claudeEndpoint,
  injectorSettings,
  podOf,
  roleArn,
} from '#testing/sts/injector-fixture.ts'

const endpoints = [awsEndpoint, claudeEndpoint]
const run = (pod: Pod, settings: Partial<InjectorSettings> = {}) =>
  inject(pod, endpoints, { ...injectorSettings, ...settings }, cartAccount)
const container = (pod: Pod, name: string): Container => {
  const found = [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])].find((one) => one.name === name)
  if (found === undefined) throw new Error(`no container ${name}`)
  return found
}
const sidecar = (pod: Pod): Container => container(pod, 'sts-creds-sidecar')
const variables = (one: Container): Record<string, unknown> =>
  Object.fromEntries((one.env ?? []).map(({ name, value }) => [name, value]))
const both = { 'tremolo.io/aws-role': 'true', 'tremolo.io/claude': 'enabled' }

/** How Kubernetes reads `command`, `args` and `env` values: third_party/forked/golang/expansion in its sources. */
function expanded(text: string, known: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$(\$|\(([^)]*)\)|[^$(])/g, (whole, next: string, name: string | undefined) => {
    if (next === '$') return '$'
    return name === undefined ? whole : (known[name] ?? whole)
  })
}

const tokenMount = { name: 'sts-tokens', mountPath: '/var/run/secrets/gatehouse', readOnly: true }

describe('a pod that requests one token', () => {
  test('gets the sidecar, the volumes, the mount and the variables', () => {
    const { pod, faults, warnings } = run(podOf())
    expect(faults).toEqual([])
    expect(warnings).toEqual([])
    expect(pod.spec.initContainers?.map(({ name }) => name)).toEqual(['sts-creds-sidecar'])
    expect(container(pod, 'app')).toEqual({
      name: 'app',
      image: 'app:1',
      env: [
        { name: 'AWS_WEB_IDENTITY_TOKEN_FILE', value: '/var/run/secrets/gatehouse/aws/token' },
        { name: 'AWS_ROLE_ARN', value: roleArn },
      ],
      volumeMounts: [tokenMount],
    })
  })

  test('is not modified: the result is a copy', () => {
    const pod = podOf()
    const before = structuredClone(pod)
    run(pod)
    expect(pod).toEqual(before)
  })

  test('A4, A5: the sidecar has a credential with its own audience, and no token of the API server', () => {
    const { pod } = run(podOf({ spec: { automountServiceAccountToken: false } }))
    expect(pod.spec.volumes?.find(({ name }) => name === 'sts-identity')?.['projected']).toMatchObject({
      sources: [{ serviceAccountToken: { audience: 'gatehouse-sts', expirationSeconds: 3600 } }],
    })
    expect(sidecar(pod).volumeMounts).toContainEqual({
      name: 'sts-identity',
      mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
      readOnly: true,
    })
  })

  test('A8, A9, A10, A11: resources, memory volume, startup probe, native sidecar', () => {
    const { pod } = run(podOf())
    expect(sidecar(pod)).toMatchObject({
      restartPolicy: 'Always',
      resources: { requests: { cpu: '5m', memory: '8Mi' }, limits: { cpu: '200m', memory: '32Mi' } },
    })
    const exec = { command: ['/bin/sh', '-c', expect.stringContaining('</var/run/secrets/gatehouse/.ready')] }
    expect(sidecar(pod)).toMatchObject({ startupProbe: { exec }, readinessProbe: { exec, failureThreshold: 1 } })
    expect(sidecar(run(podOf(), { readinessProbe: false }).pod)).not.toHaveProperty('readinessProbe')
    expect(pod.spec.volumes).toContainEqual({ name: 'sts-tokens', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } })
  })

  test('A11: without native sidecars it is a plain container, and the owner gets a warning', () => {
    const job = podOf()
    job.metadata.ownerReferences = [{ kind: 'Job' }]
    const { pod, warnings } = run(job, { nativeSidecars: false })
    expect(pod.spec.containers?.map(({ name }) => name)).toEqual(['app', 'sts-creds-sidecar'])
    expect(sidecar(pod)).not.toHaveProperty('restartPolicy')
    expect(warnings).toEqual([
      expect.stringContaining('may start before their tokens'),
      expect.stringContaining('the job will not end'),
    ])
  })

  test("the script and the values survive Kubernetes' handling of dollar signs", () => {
    const script = 'a=$(date) b=$$ c=${#d} $(STS_TARGETS) $'
    const annotations = { 'tremolo.io/aws-role': 'role/$(HOME)' }
    const { pod } = run(podOf({ annotations }), { script })
    const args = sidecar(pod)['args']
    expect(Array.isArray(args) && expanded(String(args[0]), { STS_TARGETS: 'x', date: 'y' })).toBe(script)
    expect(expanded(String(variables(container(pod, 'app'))['AWS_ROLE_ARN']), { HOME: '/root' })).toBe('role/$(HOME)')
    expect(escapeVariables('$')).toBe('$$')
  })
})

describe('A3: two endpoints in one pod', () => {
  const { pod } = run(podOf({ labels: both, annotations: { 'tremolo.io/aws-role': roleArn } }))

  test('have two files and two audiences, and one sidecar', () => {
    expect(variables(container(pod, 'app'))).toEqual({
      AWS_WEB_IDENTITY_TOKEN_FILE: '/var/run/secrets/gatehouse/aws/token',
      AWS_ROLE_ARN: roleArn,
      ANTHROPIC_IDENTITY_TOKEN_FILE: '/var/run/secrets/gatehouse/claude/token',
    })
    const credential = '/var/run/secrets/kubernetes.io/serviceaccount/token-[0-9a-f]{8}'
    expect(String(variables(sidecar(pod))['STS_TARGETS']).split('\n')).toEqual([
      expect.stringMatching(
        `^https://gatehouse.example.com/sts/aws/token /var/run/secrets/gatehouse/aws/token ${credential} "sts.amazonaws.com"$`,
      ),
      expect.stringMatching(
        `^https://gatehouse.example.com/sts/claude/token /var/run/secrets/gatehouse/claude/token ${credential} "https://api.anthropic.com"$`,
      ),
    ])
    expect(pod.spec.initContainers).toHaveLength(1)
  })

  test('with names that are not folder names still have a folder each', () => {
    const names = ['a/b', 'a-b', 'A-b', 'x'.repeat(80), `${'x'.repeat(80)}y`, '..']
    const many = names.map((name) => ({ ...claudeEndpoint, name, tokenVariable: `T${names.indexOf(name)}` }))
    const result = inject(podOf({ labels: both }), many, injectorSettings, cartAccount)
    const files = Object.values(variables(container(result.pod, 'app'))).map(String)
    expect(new Set(files).size).toBe(names.length)
    for (const file of files) expect(file).toMatch(/^\/var\/run\/secrets\/gatehouse\/[a-z0-9][-a-z0-9]{0,62}\/token$/)
  })

  test('that accept tokens of different audiences have a credential each', () => {
    const other = { ...claudeEndpoint, incomingAudience: 'elsewhere' }
    const pods = inject(
      podOf({ labels: both, annotations: { 'tremolo.io/aws-role': roleArn } }),
      [awsEndpoint, other],
      injectorSettings,
      cartAccount,
    )
    const volume = pods.pod.spec.volumes?.find(({ name }) => name === 'sts-identity')
    expect(JSON.stringify(volume)).toMatch(/gatehouse-sts.*elsewhere/)
  })
})

describe('init containers and sidecars', () => {
  test('A1: an init container gets mount and variables besides its own', () => {
    const mount = { name: 'data', mountPath: '/data' }
    const spec = {
      containers: [{ name: 'app' }],
      initContainers: [
        { name: 'one', volumeMounts: [mount] },
        { name: 'two' },
        { name: 'native', restartPolicy: 'Always' },
      ],
    }
    const { pod } = run(podOf({ spec }))
    expect(container(pod, 'one').volumeMounts).toEqual([mount, tokenMount])
    for (const name of ['one', 'two', 'native']) expect(variables(container(pod, name))['AWS_ROLE_ARN']).toBe(roleArn)
    expect(pod.spec.initContainers?.map(({ name }) => name)).toEqual(['sts-creds-sidecar', 'one', 'two', 'native'])
  })

  test('A12: the sidecar is last if the configuration says so, and keeps its place when called again', () => {
    const spec = { initContainers: [{ name: 'one' }] }
    const { pod } = run(podOf({ spec }), { position: 'last' })
    expect(pod.spec.initContainers?.map(({ name }) => name)).toEqual(['one', 'sts-creds-sidecar'])
    pod.spec.initContainers = [{ name: 'mesh-init' }, ...(pod.spec.initContainers ?? [])]
    expect(run(pod).pod.spec.initContainers?.map(({ name }) => name)).toEqual(['mesh-init', 'one', 'sts-creds-sidecar'])
  })

  test.each([
    ['by annotation', { 'tremolo.io/skip-containers': 'b, c' }, ['a']],
    ['with the other separator', { 'tremolo.io/skip-containers': 'b;c' }, ['a']],
    ['by naming the others', { 'tremolo.io/include-containers': 'c' }, ['c']],
    ['by configuration', {}, ['a', 'b', 'c']],
    ['but not where it is included', { 'tremolo.io/include-containers': 'istio-proxy' }, ['istio-proxy']],
    ['and skipping wins', { 'tremolo.io/include-containers': 'a,b', 'tremolo.io/skip-containers': 'b' }, ['a']],
  ])('A20: containers are skipped %s', (_, annotations, expected) => {
    const spec = { containers: ['a', 'b', 'c', 'istio-proxy'].map((name) => ({ name })) }
    const { pod } = run(podOf({ spec, annotations }))
    const given = pod.spec.containers?.filter(({ env }) => env !== undefined).map(({ name }) => name)
    expect(given).toEqual(expected)
  })

  test('a container that is named but absent is reported', () => {
    const { warnings } = run(podOf({ annotations: { 'tremolo.io/skip-containers': 'ap' } }))
    expect(warnings).toEqual(['the pod has no container "ap", which an annotation names'])
  })

  test('a misspelled setting is a warning that suggests the right one', () => {
    const annotations = { 'tremolo.io/aws-role': roleArn, 'tremolo.io/aws-role.valu': 'x' }
    expect(run(podOf({ annotations })).warnings).toEqual([
      'the annotation "tremolo.io/aws-role.valu" names no setting (did you mean "tremolo.io/aws-role.value"?)',
    ])
  })
})

describe('A2: called again', () => {
  test('nothing changes, and no variable comes twice', () => {
    const once = run(podOf()).pod
    const twice = run(once)
    expect(diffToPatch(once, twice.pod)).toEqual([])
    expect(twice.faults).toEqual([])
  })

  test('even after Kubernetes added its defaults and another injector a container', () => {
    const { pod } = run(podOf())
    Object.assign(sidecar(pod), { terminationMessagePath: '/dev/termination-log' })
    pod.spec.containers = [...(pod.spec.containers ?? []), { name: 'istio-proxy' }]
    expect(diffToPatch(pod, run(pod).pod)).toEqual([])
  })

  test('a container added in between gets its token too', () => {
    const { pod } = run(podOf())
    pod.spec.containers = [...(pod.spec.containers ?? []), { name: 'late' }]
    expect(variables(container(run(pod).pod, 'late'))['AWS_ROLE_ARN']).toBe(roleArn)
  })
})

describe("A2: a container's own variables win", () => {
  test.each([
    ['another value', { name: 'AWS_ROLE_ARN', value: 'arn:aws:iam::999:role/own' }],
    ['a value from elsewhere', { name: 'AWS_ROLE_ARN', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }],
    ['another file', { name: 'AWS_WEB_IDENTITY_TOKEN_FILE', value: '/own' }],
  ])('%s: the pair stays complete, with a warning', (_, own) => {
    const { pod, faults } = run(podOf({ spec: { containers: [{ name: 'app', env: [own] }] } }))
    expect(container(pod, 'app').env).toEqual([own])
    expect(faults).toEqual([expect.stringContaining(`container "app" sets ${own.name} itself`)])
  })

  test('the same value is not a conflict', () => {
    const own = { name: 'AWS_ROLE_ARN', value: roleArn }
    const { pod, faults } = run(podOf({ spec: { containers: [{ name: 'app', env: [own] }] } }))
    expect(faults).toEqual([])
    expect(container(pod, 'app').env).toEqual([
      own,
      { name: 'AWS_WEB_IDENTITY_TOKEN_FILE', value: '/var/run/secrets/gatehouse/aws/token' },
    ])
  })
})

/** Terms with the given expressions about the system: one term with all of them, or one for each. */
function affinity(expressions: readonly (readonly string[])[], terms = 1, each = false) {
  const matchExpressions = expressions.map(([operator = '', ...values]) => ({
    key: 'kubernetes.io/os',
    operator,
    values,
  }))
  const nodeSelectorTerms = each
    ? matchExpressions.map((one) => ({ matchExpressions: [one] }))
    : Array.from({ length: terms }, () => ({ matchExpressions }))
  return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } }
}

describe('impossible requests are reported, and nothing is thrown', () => {
  test.each([
    ['A13: a label without annotation', podOf({ labels: { 'tremolo.io/aws-role': 'true' } }), 'needs an annotation'],
    ['A13: an empty annotation', podOf({ annotations: { 'tremolo.io/aws-role': ' ' } }), 'needs an annotation'],
    ['a line break in the annotation', podOf({ annotations: { 'tremolo.io/aws-role': 'a\nb' } }), 'not plain text'],
    ['a huge annotation', podOf({ annotations: { 'tremolo.io/aws-role': 'a'.repeat(3000) } }), 'too long'],
    ['Windows', podOf({ spec: { nodeSelector: { 'kubernetes.io/os': 'windows' } } }), 'Windows'],
    ['Windows by name', podOf({ spec: { os: { name: 'windows' } } }), 'Windows'],
    [
      'Windows by a build',
      podOf({ spec: { nodeSelector: { 'node.kubernetes.io/windows-build': '10.0' } } }),
      'Windows',
    ],
    ['Windows by affinity', podOf({ spec: { affinity: affinity([['In', 'windows']]) } }), 'Windows'],
    ['no Linux by affinity', podOf({ spec: { affinity: affinity([['NotIn', 'linux']]) } }), 'Windows'],
    ['Windows by every term', podOf({ spec: { affinity: affinity([['In', 'windows']], 2) } }), 'Windows'],
    ['a container of that name', podOf({ spec: { initContainers: [{ name: 'sts-creds-sidecar' }] } }), 'no place'],
    ['a volume of that name', podOf({ spec: { volumes: [{ name: 'sts-identity', emptyDir: {} }] } }), 'no place'],
    [
      'a projected volume of that name without the sidecar',
      podOf({ spec: { volumes: [{ name: 'sts-identity', projected: { sources: [] } }] } }),
      'no place',
    ],
  ])('%s: the pod stays unchanged', (_, given, text) => {
    const { pod, faults, endpoints: given2 } = run(given)
    expect(pod).toEqual(given)
    expect(given2).toEqual([])
    expect(faults).toEqual([expect.stringContaining(text)])
  })

  test.each([
    ['either system', { affinity: affinity([['In', 'windows', 'linux']]) }],
    [
      'a term for each system',
      {
        affinity: affinity(
          [
            ['In', 'windows'],
            ['In', 'linux'],
          ],
          1,
          true,
        ),
      },
    ],
    ['not Windows', { affinity: affinity([['NotIn', 'windows']]) }],
    ['no terms', { affinity: { nodeAffinity: {} } }],
    ['a preference', { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } } }],
  ])('nodes of %s may run Linux, so the pod gets its token', (_, spec) => {
    expect(run(podOf({ spec })).endpoints).toEqual(['aws'])
  })

  test.each(['app', '-1', '0', '1e3', '4294967296', '１２', ''])('A14: tremolo.io/user "%s"', (user) => {
    const { pod, faults } = run(podOf({ annotations: { 'tremolo.io/user': user } }))
    expect(faults).toEqual([expect.stringContaining('"tremolo.io/user" must be a number')])
    expect(sidecar(pod).securityContext?.runAsUser).toBe(65532)
  })

  test.each([
    ['tremolo.io/group', 'staff'],
    ['tremolo.io/non-root', 'false'],
    ['tremolo.io/non-root', 'no'],
    ['tremolo.io/create-volume', 'maybe'],
    ['tremolo.io/sidecar-memory-limit', 'much'],
    ['tremolo.io/sidecar-cpu-request', '1; rm'],
  ])('%s: %s', (name, value) => {
    expect(run(podOf({ annotations: { [name]: value } })).faults).toEqual([expect.stringContaining(`"${name}"`)])
  })

  test('another volume at the mount path of the tokens', () => {
    const own = { name: 'own', mountPath: '/var/run/secrets/gatehouse/' }
    const { pod, faults } = run(podOf({ spec: { containers: [{ name: 'app', volumeMounts: [own] }] } }))
    expect(container(pod, 'app')).toEqual({ name: 'app', volumeMounts: [own] })
    expect(faults).toEqual([expect.stringContaining('mounts another volume')])
  })

  test('a sidecar of another configuration stays, and is reported', () => {
    const { pod } = run(podOf())
    const other = inject(
      pod,
      endpoints,
      { ...injectorSettings, tokenService: 'https://elsewhere.example.com' },
      cartAccount,
    )
    expect(diffToPatch(pod, other.pod)).toEqual([])
    expect(other.faults).toEqual([expect.stringContaining('fetches other tokens')])
  })
})

describe('pods without requests', () => {
  test.each([{}, { app: 'x' }, { 'tremolo.io/aws-role': 'false' }, { 'tremolo.io/aws-role': 'Disabled' }])(
    'A13: a pod with the labels %j stays unchanged without a warning',
    (labels) => {
      const given = podOf({
        labels: { ...labels },
        annotations: { 'tremolo.io/aws-role': roleArn, 'tremolo.io/user': 'app' },
      })
      expect(run(given)).toEqual({ pod: given, endpoints: [], faults: [], warnings: [] })
    },
  )

  test('lists that Go writes as null', () => {
    const labels = null
    const given: Pod = { metadata: { labels }, spec: { containers: null, volumes: null } }
    expect(run(given).pod).toEqual(given)
  })
})

describe('users, groups and modes (A7)', () => {
  const mode = (pod: Pod): unknown => variables(sidecar(pod))['STS_FILE_MODE']
  test.each([
    ['nothing sets them', {}, {}, 65532, '0444'],
    ['the annotation', { 'tremolo.io/user': '1234', 'tremolo.io/group': '99' }, {}, 1234, '0444'],
    ['all containers share a user', {}, { securityContext: { runAsUser: 1000 } }, 1000, '0400'],
    ['the pod has a group', {}, { securityContext: { fsGroup: 2000 } }, 65532, '0440'],
    ['all run as root', {}, { securityContext: { runAsUser: 0 } }, 65532, '0444'],
    [
      'one user differs',
      {},
      { securityContext: { runAsUser: 1000 }, initContainers: [{ name: 'i', securityContext: { runAsUser: 1 } }] },
      65532,
      '0444',
    ],
  ])('%s', (_, annotations, spec, user, expected) => {
    const { pod, faults } = run(podOf({ annotations, spec }))
    expect(faults).toEqual([])
    expect(sidecar(pod).securityContext?.runAsUser).toBe(user)
    expect(mode(pod)).toBe(expected)
  })

  test.each([
    ['no group is named', {}, {}, 65532],
    ['the annotation names one', { 'tremolo.io/group': '99' }, {}, 99],
    ['all containers share one', {}, { securityContext: { runAsGroup: 3000 } }, 3000],
    ["all containers have root's", {}, { securityContext: { runAsGroup: 0 } }, 65532],
  ])("the sidecar's group is never root's: %s", (_, annotations, spec, group) => {
    expect(sidecar(run(podOf({ annotations, spec })).pod).securityContext?.runAsGroup).toBe(group)
  })

  test('a configured mode is used', () => {
    expect(mode(run(podOf(), { fileMode: '0440' }).pod)).toBe('0440')
  })
})

test('a fallback of a setting that is not plain text is reported by the name of the setting', () => {
  const fallback = parseTemplate('${saname}', { keys: false, attributes: true })
  const setting = { name: 'session', main: false, form: /^/, example: 'x', needed: false, fallback }
  const account = { ...cartAccount, name: 'a\nb' }
  const { faults } = inject(podOf(), [{ ...awsEndpoint, settings: [setting] }], injectorSettings, account)
  expect(faults).toEqual([expect.stringContaining('the setting "session" of the endpoint is too long or not plain')])
})

test('a mount that hides a token is reported', () => {
  const mounted = (mountPath: string) =>
    run(podOf({ spec: { containers: [{ name: 'app', volumeMounts: [{ name: 'other', mountPath }] }] } })).faults
  expect(mounted('/var/run/secrets/gatehouse/claude')).toEqual([])
  for (const path of ['/var/run/secrets/gatehouse/aws', '/var/run/secrets/gatehouse/./aws/token']) {
    expect(mounted(path)).toEqual([`container "app" mounts another volume at ${path}, which hides the token of "aws"`])
  }
})

describe('A15: create-volume', () => {
  const annotations = { 'tremolo.io/create-volume': 'false' }
  test("a pod's own volume is used, and the rest is added", () => {
    const own = { name: 'sts-tokens', emptyDir: {} }
    const { pod, faults } = run(podOf({ annotations, spec: { volumes: [own] } }))
    expect(faults).toEqual([])
    expect(pod.spec.volumes?.map(({ name }) => name)).toEqual(['sts-tokens', 'sts-identity'])
    expect(pod.spec.volumes?.[0]).toEqual(own)
  })

  test('if the pod has none, one is created and the owner gets a warning', () => {
    const { pod, faults } = run(podOf({ annotations }))
    expect(faults).toEqual([expect.stringContaining('brings no volume')])
    expect(pod.spec.volumes?.map(({ name }) => name)).toEqual(['sts-tokens', 'sts-identity'])
  })
})

describe('A16: explicit certificate trust', () => {
  const asking = podOf({ labels: { 'tremolo.io/claude': 'enabled' } })
  test('the certificates are in the sidecar, and the ConfigMap is optional', () => {
    const { pod } = run(asking, { certificates: 'PEM' })
    expect(variables(sidecar(pod))).toMatchObject({ STS_CERTIFICATES: 'PEM', STS_TRUST_FILE: expect.any(String) })
    expect(pod.spec.volumes?.find(({ name }) => name === 'sts-identity')?.['projected']).toMatchObject({
      sources: [{}, { configMap: { name: 'ouca', optional: true, items: [{ key: 'ca.crt', path: 'trust/ca.crt' }] } }],
    })
  })

  test('other endpoints get neither', () => {
    const { pod } = run(podOf(), { certificates: 'PEM' })
    expect(JSON.stringify(pod)).not.toMatch(/PEM|ouca/)
  })
})

test('A19: image secrets are added to those of the pod', () => {
  const { pod } = run(podOf({ spec: { imagePullSecrets: [{ name: 'a' }] } }), { imagePullSecrets: ['a', 'b'] })
  expect(pod.spec.imagePullSecrets).toEqual([{ name: 'a' }, { name: 'b' }])
})

describe('A6: pod security level restricted', () => {
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
  const strict = { securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } } }
  const compliant = podOf({
    labels: both,
    annotations: { 'tremolo.io/aws-role': roleArn },
    spec: { ...strict, containers: [{ name: 'app', securityContext }] },
  })
  const bare = podOf()

  test.each(restrictedRules)('$name: an injected pod that met it still meets it', ({ offenders }) => {
    expect(offenders(compliant)).toEqual([])
    expect(offenders(run(compliant).pod)).toEqual([])
    expect(offenders(run(compliant, { nativeSidecars: false }).pod)).toEqual([])
  })

  test.each(restrictedRules)('$name: the sidecar meets it without help from the pod', ({ offenders }) => {
    expect(offenders(run(bare).pod)).not.toContain('sts-creds-sidecar')
  })

  test('the rules see the lower-case "all" of OpenUnison', () => {
    const pod = podOf({ spec: { containers: [{ name: 'app', securityContext: { capabilities: { drop: ['all'] } } }] } })
    expect(restrictedRules.find(({ name }) => name === 'capabilities')?.offenders(pod)).toEqual(['app'])
  })
})

describe('hostile pods', () => {
  test.each([
    [{ 'memory-request': '64Mi' }, { requests: { memory: '64Mi' }, limits: { memory: '64Mi' } }],
    [{ 'memory-limit': '4Mi' }, { requests: { memory: '8Mi' }, limits: { memory: '8Mi' } }],
    [{ 'memory-request': '10000k' }, { requests: { memory: '10000k' }, limits: { memory: '32Mi' } }],
    [{ 'cpu-request': '1' }, { requests: { cpu: '1' }, limits: { cpu: '1' } }],
    [{ 'cpu-request': '0.1' }, { requests: { cpu: '0.1' }, limits: { cpu: '200m' } }],
  ])('no limit is below its request, which the API server would reject: %j', (amounts, expected) => {
    const annotations = Object.fromEntries(Object.entries(amounts).map(([k, v]) => [`tremolo.io/sidecar-${k}`, v]))
    expect(sidecar(run(podOf({ annotations })).pod)['resources']).toMatchObject(expected)
  })

  test('a mount path of only slashes takes no time', () => {
    const mountPath = `${'/'.repeat(200_000)}x`
    const began = performance.now()
    run(podOf({ spec: { containers: [{ name: 'app', volumeMounts: [{ name: 'v', mountPath }] }] } }))
    expect(performance.now() - began).toBeLessThan(8_000)
  })

  test('every name of a long list of containers counts', () => {
    const names = Array.from({ length: 100 }, (_, i) => `c${i}`)
    const { pod } = run(
      podOf({
        annotations: { 'tremolo.io/skip-containers': names.slice(0, 99).join(',') },
        spec: { containers: names.map((name) => ({ name })) },
      }),
    )
    const given = (pod.spec.containers ?? []).filter(({ env }) => env !== undefined).map(({ name }) => name)
    expect(given).toEqual(['c99'])
  })

  test('a pod with more containers than any node runs gets nothing, and a warning', () => {
    const containers = Array.from({ length: 1001 }, (_, i) => ({ name: `c${i}` }))
    const given = podOf({ spec: { containers } })
    const { pod, faults, endpoints: got } = run(given)
    expect([pod, got]).toEqual([given, []])
    expect(faults).toEqual(['pods of more than 1000 containers get no tokens'])
  })
})
