import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parse } from 'yaml'
import type { KubeClient } from '#testing/kubernetes/kube-client.ts'

interface Definition {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string; readonly kind: string }
    readonly versions: readonly { readonly name: string }[]
  }
}

let definitions: ReadonlyMap<string, Definition> | undefined

/** The deployed definitions, by file name. */
export function deployedDefinitions(): ReadonlyMap<string, Definition> {
  definitions ??= new Map(
    globSync('deploy/crds/*.yaml')
      .sort()
      .map((file) => [basename(file), parse(readFileSync(file, 'utf8')) as Definition]),
  )
  return definitions
}

/** Registers all kinds of objects in the cluster, by the deployed definitions. */
export async function defineAll(cluster: KubeClient): Promise<void> {
  for (const definition of deployedDefinitions().values()) await define(cluster, definition)
}

/** Registers the kinds that others define. */
export async function defineFiles(cluster: KubeClient, files: readonly string[]): Promise<void> {
  for (const file of files) await define(cluster, parse(readFileSync(file, 'utf8')) as Definition)
}

function define(cluster: KubeClient, definition: Definition): Promise<void> {
  const { group, names, versions } = definition.spec
  return cluster.defineKind(definition, `/apis/${group}/${versions.at(-1)?.name}/${names.plural}`)
}

/** Registers the object `OpenUnison`, with the parts that a gateway reads and a status in OpenUnison's form. */
export async function defineOpenUnison(cluster: KubeClient): Promise<void> {
  const [group, version, plural] = ['openunison.tremolo.io', 'v6', 'openunisons']
  const openAPIV3Schema = {
    type: 'object',
    properties: {
      spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      status: {
        type: 'object',
        properties: { conditions: { type: 'object', properties: { status: { type: 'string' } } } },
      },
    },
  }
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, singular: 'openunison', kind: 'OpenUnison' },
      versions: [
        { name: version, served: true, storage: true, subresources: { status: {} }, schema: { openAPIV3Schema } },
      ],
    },
  }
  await cluster.defineKind(definition, `/apis/${group}/${version}/${plural}`)
}

/** The path of objects of this kind, in their version. */
export function objectPath(apiVersion: string, kind: string, namespace: string): string {
  const found = [...deployedDefinitions().values()].find(({ spec }) => spec.names.kind === kind)
  if (found === undefined) throw new Error(`no definition of ${kind}`)
  return `/apis/${apiVersion}/namespaces/${namespace}/${found.spec.names.plural}`
}

/** A kubeconfig of a user with a token. */
export const tokenKubeconfig = (cluster: KubeClient, token: string): string => {
  const { url, ca } = cluster.connection
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [
      { name: 'test', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } },
    ],
    users: [{ name: 'test', user: { token } }],
  })
}
