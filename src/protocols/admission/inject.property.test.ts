import fc from 'fast-check'
import { jsonpatch } from 'json-p3'
import { describe, expect, test } from 'vitest'
import { parseTemplate } from '#kernel/template.ts'
import { diffToPatch } from '#protocols/admission/admission-review.ts'
import { inject } from '#protocols/admission/inject.ts'
import type { InjectorSettings } from '#protocols/admission/injector-settings.ts'
import { type Pod, podSchema } from '#protocols/admission/pod.ts'
import { escapeVariables } from '#protocols/admission/sidecar-container.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { awsEndpoint, cartAccount, claudeEndpoint, injectorSettings } from '#testing/sts/injector-fixture.ts'
import { isKept } from '#testing/sts/is-kept.ts'
import type { PodEndpoint } from './pod-endpoint.ts'

const text = (template: string) => parseTemplate(template, { keys: false, attributes: true })
const endpoints: readonly PodEndpoint[] = [
  awsEndpoint,
  claudeEndpoint,
  {
    ...claudeEndpoint,
    name: 'gcp',
    label: 'gcp',
    tokenVariable: 'GOOGLE_TOKEN',
    settings: [{ name: 'provider', main: true, form: /^[a-z]/, example: 'p', needed: true }],
    variables: [
      { name: 'PROVIDER', text: text('${provider}'), identity: true },
      { name: 'HOME', text: text('${namespace}'), identity: false },
    ],
    file: {
      name: 'f.json',
      variable: 'CREDENTIALS',
      needs: ['provider'],
      content: (read) => ({ p: read('provider') ?? '' }),
    },
  },
]
const ordinaryName = fc.constantFrom('a', 'b', 'c', 'd', 'istio-proxy', 'data')
const name = fc.oneof(
  { weight: 12, arbitrary: ordinaryName },
  { weight: 1, arbitrary: fc.constantFrom('sts-creds-sidecar', 'sts-tokens', 'sts-identity') },
)
const variable = fc.constantFrom(
  'AWS_ROLE_ARN',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'ANTHROPIC_IDENTITY_TOKEN_FILE',
  'HOME',
  'PROVIDER',
  'CREDENTIALS',
  'STS_TARGETS',
)
const path = fc.constantFrom('/data', '/var/run/secrets/gatehouse', '/var/run/secrets/gatehouse/', '/x')
const extra = fc.jsonValue({ maxDepth: 2 }).filter((json) => !JSON.stringify(json).includes('__proto__'))
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const optionalList = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof(fc.constant(undefined), fc.constant(null), fc.array(arbitrary, { maxLength: 4 }))

const context = maybe(
  fc.record({ runAsUser: maybe(fc.constantFrom(0, 1, 1000)), fsGroup: maybe(fc.constant(2000)), other: extra }),
)
const container = fc.record({
  name,
  image: fc.string(),
  env: optionalList(fc.record({ name: variable, value: maybe(fc.string()), valueFrom: maybe(extra) })),
  volumeMounts: optionalList(fc.record({ name, mountPath: path, subPath: maybe(fc.string()) })),
  securityContext: context,
  restartPolicy: maybe(fc.constant('Always')),
  unknown: extra,
})
const annotation = fc.constantFrom(
  'aws-role',
  'gcp',
  'gcp.provider',
  'user',
  'group',
  'non-root',
  'create-volume',
  'skip-containers',
  'include-containers',
  'sidecar-cpu-limit',
)
const annotationValue = fc.oneof(
  fc.string(),
  fc.constantFrom('true', 'false', '1000', 'a,b', 'arn:aws:iam::1:role/r', ''),
)
const podArbitrary = fc
  .record({
    apiVersion: fc.constant('v1'),
    kind: fc.constant('Pod'),
    metadata: fc.record({
      labels: fc.oneof(
        fc.constant({ 'tremolo.io/aws-role': 'true' }),
        fc.dictionary(
          fc.constantFrom('tremolo.io/aws-role', 'tremolo.io/claude', 'tremolo.io/gcp', 'app'),
          fc.constantFrom('true', 'false', ''),
        ),
        fc.constant(undefined),
      ),
      annotations: fc.oneof(
        fc.constant({ 'tremolo.io/aws-role': 'arn:aws:iam::1:role/r' }),
        fc.constant(undefined),
        fc.dictionary(
          annotation.map((one) => `tremolo.io/${one}`),
          annotationValue,
        ),
      ),
      managedFields: extra,
    }),
    spec: fc.record({
      containers: optionalList(container),
      initContainers: optionalList(container),
      volumes: optionalList(fc.record({ name, projected: maybe(extra), emptyDir: maybe(extra) })),
      imagePullSecrets: optionalList(fc.record({ name })),
      securityContext: context,
      os: maybe(fc.record({ name: fc.constantFrom('linux', 'windows') })),
      unknown: extra,
    }),
  })
  .map((made): Pod => podSchema.parse(JSON.parse(JSON.stringify(made))))

const settingsArbitrary: fc.Arbitrary<InjectorSettings> = fc
  .record({
    nativeSidecars: fc.boolean(),
    position: fc.constantFrom('first', 'last'),
    fileMode: fc.constantFrom('auto', '0440'),
    imagePullSecrets: fc.constantFrom([], ['registry']),
  })
  .map((some) => ({ ...injectorSettings, ...some }))

const names = (list: readonly { readonly name?: unknown }[] | null | undefined): unknown[] =>
  (list ?? []).map((one) => one.name)
const repeated = (list: readonly unknown[]): unknown[] => list.filter((one, position) => list.indexOf(one) !== position)

describe('over random pods', () => {
  const runs = { numRuns: sampled(100, 400) }

  test('nothing existing is removed or changed, and the given pod is not modified', () => {
    fc.assert(
      fc.property(podArbitrary, settingsArbitrary, (pod, settings) => {
        const before = JSON.stringify(pod)
        const result = inject(pod, endpoints, settings, cartAccount)
        expect(JSON.stringify(pod)).toBe(before)
        expect(isKept(pod, result.pod)).toBe(true)
      }),
      runs,
    )
  })

  test('injecting twice equals once', () => {
    fc.assert(
      fc.property(podArbitrary, settingsArbitrary, (pod, settings) => {
        const once = inject(pod, endpoints, settings, cartAccount).pod
        expect(inject(once, endpoints, settings, cartAccount).pod).toEqual(once)
      }),
      runs,
    )
  })

  test('applied by another library, the patch creates the injected pod, by only adding and replacing null', () => {
    fc.assert(
      fc.property(podArbitrary, settingsArbitrary, (pod, settings) => {
        const after = inject(pod, endpoints, settings, cartAccount).pod
        const patch = diffToPatch(pod, after)
        const wire: unknown = JSON.parse(JSON.stringify(patch))
        const applied = jsonpatch.apply(wire as Parameters<typeof jsonpatch.apply>[0], JSON.parse(JSON.stringify(pod)))
        expect(applied).toEqual(JSON.parse(JSON.stringify(after)))
        for (const { op, path: place } of patch) {
          if (op === 'replace')
            expect(place).toMatch(/\/(?:containers|initContainers|volumes|env|volumeMounts|imagePullSecrets)$/)
        }
      }),
      runs,
    )
  })

  test('no name, variable or mount path is duplicated', () => {
    const lists = (pod: Pod): unknown[][] => {
      const all = [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]
      return [
        names(all),
        names(pod.spec.volumes),
        names(pod.spec.imagePullSecrets),
        all.flatMap((one, position) => names(one.env).map((each) => `${position} ${String(each)}`)),
        all.flatMap((one, position) => (one.volumeMounts ?? []).map(({ mountPath }) => `${position} ${mountPath}`)),
      ]
    }
    fc.assert(
      fc.property(podArbitrary, settingsArbitrary, (pod, settings) => {
        const had = lists(pod).map((list) => repeated(list).length)
        const has = lists(inject(pod, endpoints, settings, cartAccount).pod).map((list) => repeated(list).length)
        expect(has).toEqual(had)
      }),
      runs,
    )
  })

  test('an endpoint has all variables of the injector, or none of them', () => {
    fc.assert(
      fc.property(podArbitrary, settingsArbitrary, (pod, settings) => {
        const after = inject(pod, endpoints, settings, cartAccount).pod
        for (const one of [...(after.spec.initContainers ?? []), ...(after.spec.containers ?? [])]) {
          const env = one.env ?? []
          if (!env.some(({ value }) => value === '/var/run/secrets/gatehouse/aws/token')) continue
          const roles = env.filter((variable) => variable.name === 'AWS_ROLE_ARN').map(({ value }) => value)
          const asked = escapeVariables(pod.metadata.annotations?.['tremolo.io/aws-role']?.trim() ?? '')
          expect(new Set(roles)).toEqual(new Set([asked]))
        }
      }),
      runs,
    )
  })

  test('the generator creates pods that are injected, and pods that are not', () => {
    const sample = fc
      .sample(podArbitrary, 300)
      .map((pod) => inject(pod, endpoints, injectorSettings, cartAccount).endpoints.length)
    expect([...new Set(sample)]).toEqual(expect.arrayContaining([0, 1, 2]))
  })
})
