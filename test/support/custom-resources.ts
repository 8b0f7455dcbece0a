import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parse } from 'yaml'
import type { KubeClient } from './kube-client.ts'

interface Definition {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string; readonly kind: string }
    readonly versions: readonly { readonly name: string }[]
  }
}

/** The definitions that are deployed, by the name of their file. */
export const deployedDefinitions = (): ReadonlyMap<string, Definition> =>
  new Map(
    globSync('deploy/crds/*.yaml')
      .sort()
      .map((file) => [basename(file), parse(readFileSync(file, 'utf8')) as Definition]),
  )

/** Makes the cluster know all kinds of objects, by the definitions that are deployed. */
export async function defineAll(cluster: KubeClient): Promise<void> {
  for (const definition of deployedDefinitions().values()) {
    const { group, names, versions } = definition.spec
    await cluster.defineKind(definition, `/apis/${group}/${versions.at(-1)?.name}/${names.plural}`)
  }
}

/** Where objects of this kind are, in the version they say. */
export function objectPath(apiVersion: string, kind: string, namespace: string): string {
  const found = [...deployedDefinitions().values()].find(({ spec }) => spec.names.kind === kind)
  if (found === undefined) throw new Error(`no definition of ${kind}`)
  return `/apis/${apiVersion}/namespaces/${namespace}/${found.spec.names.plural}`
}

/** A kubeconfig of somebody who shows a token. */
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
