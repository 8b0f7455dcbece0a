import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'

export const chartFolder = 'deploy/helm/gatehouse'

export interface ChartProfile {
  readonly name: string
  /** Values files; later ones override earlier ones. */
  readonly files: readonly string[]
}

/** The tested values: none, and each file of the chart's folder ci, the one of the token service with its profile. */
export const chartProfiles: readonly ChartProfile[] = [
  { name: 'default', files: [] },
  ...globSync(`${chartFolder}/ci/*-values.yaml`)
    .sort()
    .map((file) => {
      const name = basename(file, '-values.yaml')
      return { name, files: name === 'sts' ? [`${chartFolder}/values-sts.yaml`, file] : [file] }
    }),
]

/** A Kubernetes object of the rendered chart. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly [field: string]: unknown
}

const run = promisify(execFile)
const clusterWide =
  /^(?:ClusterRole|ClusterRoleBinding|CustomResourceDefinition|MutatingWebhookConfiguration|Namespace)$/
const plurals: Readonly<Record<string, string>> = { Ingress: 'ingresses', NetworkPolicy: 'networkpolicies' }

export class Helm {
  readonly #program: string
  readonly #rendered = new Map<string, Promise<Manifest[]>>()

  constructor(program: string) {
    this.#program = program
  }

  /** Its output; rejects with its error. */
  async run(...args: string[]): Promise<string> {
    try {
      return (await run(this.#program, args, { timeout: 60_000, maxBuffer: 64 << 20 })).stdout
    } catch (error) {
      const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string }
      throw new Error(`helm ${args[0]}: ${stdout}${stderr}`, { cause: error })
    }
  }

  /** The objects of the chart. The same values are rendered once. */
  render(namespace: string, { files }: Pick<ChartProfile, 'files'>, ...args: string[]): Promise<Manifest[]> {
    const all = ['--namespace', namespace, ...files.flatMap((file) => ['--values', file]), ...args]
    const key = JSON.stringify(all)
    const rendered = this.#rendered.get(key) ?? this.#render(all)
    this.#rendered.set(key, rendered)
    return rendered
  }

  async #render(args: readonly string[]): Promise<Manifest[]> {
    const text = await this.run('template', 'gatehouse', chartFolder, ...args)
    return parseAllDocuments(text)
      .map((document) => document.toJS() as Manifest | null)
      .filter((object) => object !== null)
  }
}

export function findObject(objects: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = objects.find((one) => one.kind === kind && (name === undefined || one.metadata.name === name))
  if (found === undefined) throw new Error(`the chart makes no ${kind} ${name ?? ''}`)
  return found
}

/** The path of an object at the API server. */
export function objectPath({ apiVersion, kind, metadata }: Manifest, namespace: string): string {
  const plural = plurals[kind] ?? `${kind.toLowerCase()}s`
  const place = clusterWide.test(kind) ? '' : `/namespaces/${metadata.namespace ?? namespace}`
  return `${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}${place}/${plural}/${metadata.name}`
}
