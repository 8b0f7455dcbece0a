import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { kinds } from '#config/build/kinds.ts'
import { type Manifest, objectPath } from '#testing/kubernetes/helm-chart.ts'
import { kustomizeBinary } from '#testing/kubernetes/kustomize-binary.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { gitopsFiles } from '../../deploy/write-gitops.ts'

const run = promisify(execFile)
const helm = inject('helm')

async function build(folder: string): Promise<Manifest[]> {
  const { stdout } = await run(await kustomizeBinary(), ['build', folder], { maxBuffer: 16 << 20, timeout: 60_000 })
  return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest)
}

describe.skipIf(helm === undefined)('what npm run gitops makes', () => {
  test('is up to date with the chart, the definitions and the health check', async () => {
    for (const [file, text] of await gitopsFiles(helm ?? '')) {
      expect({ file, text: readFileSync(`deploy/${file}`, 'utf8') }).toEqual({ file, text })
    }
  })
})

onKubernetes('an overlay of the base', (cluster) => {
  const namespace = '/api/v1/namespaces/identity'
  let objects: Manifest[] = []
  beforeAll(async () => {
    objects = await build('deploy/kustomize/example')
    await cluster.call('POST', '/api/v1/namespaces', { metadata: { name: 'identity' } })
  }, 240_000)
  afterAll(() => cluster.call('DELETE', namespace))

  test('is accepted by the API server, object by object', async () => {
    // A definition is installed before the objects of its kind.
    const definitions = objects.filter(({ kind }) => kind === 'CustomResourceDefinition')
    // Those of the configuration, the users that a target stores, and the grants of teams.
    expect(definitions).toHaveLength(kinds.length + 2)
    for (const definition of definitions) {
      const { group, names, versions } = (definition as unknown as Definition).spec
      await cluster.defineKind(definition, `/apis/${group}/${versions[0]?.name}/${names.plural}`)
    }
    const others = objects.filter(({ kind }) => kind !== 'CustomResourceDefinition' && kind !== 'Namespace')
    expect(others.map(({ kind }) => kind)).toContain('Org')
    for (const object of others) {
      expect(object.metadata.namespace, object.kind).toBe('identity')
      const folder = collectionOf(object)
      const { status, body } = await cluster.call('POST', `${folder}?dryRun=All&fieldValidation=Strict`, object)
      expect({ kind: object.kind, status, body: status < 300 ? undefined : body }).toEqual({
        kind: object.kind,
        status: 201,
        body: undefined,
      })
    }
  })

  test('reads its objects from its own namespace, with the image and address of the overlay', () => {
    const deployment = objects.find(({ kind }) => kind === 'Deployment') as unknown as Deployment
    const [container] = deployment.spec.template.spec.containers
    expect(container?.image).toBe('images.example.com/gatehouse:0.1.0')
    expect(container?.args).toContain('--config=kubernetes:$(POD_NAMESPACE)/gatehouse-config')
    expect(container?.args).toContain('--trusted-proxy=10.0.0.0/8')
    expect(container?.env).toContainEqual({ name: 'GATEHOUSE_URL', value: 'https://gateway.example.com' })
    expect(container?.env.map(({ name }) => name)).toContain('POD_NAMESPACE')
    const binding = objects.find(({ kind }) => kind === 'RoleBinding') as unknown as { subjects: object[] }
    expect(binding.subjects).toMatchObject([{ kind: 'ServiceAccount', namespace: 'identity' }])
  })
})

/** The path of an object without its name. */
const collectionOf = (object: Manifest): string => objectPath(object, 'identity').replace(/\/[^/]+$/, '')

interface Definition {
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string }
    readonly versions: readonly { readonly name: string }[]
  }
}

interface Deployment {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly image: string
          readonly args: readonly string[]
          readonly env: readonly { readonly name: string; readonly value?: string }[]
        }[]
      }
    }
  }
}
