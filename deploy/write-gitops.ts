import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { configResources } from '#config/sources/cluster-documents.ts'
import { tokenGrants } from '#features/sts/grants/token-grant.ts'
import type { JsonObject } from '#kernel/json.ts'
import { helmBinary } from '#testing/kubernetes/helm-binary.ts'
import { Helm } from '#testing/kubernetes/helm-chart.ts'
import { crdFolder } from './write-crds.ts'

const header = (source: string): string => `# Made by npm run gitops from ${source}.\n`
const namespace = 'gatehouse'

/** The text of each file that is made, by its path below deploy. */
export async function gitopsFiles(helm: string): Promise<ReadonlyMap<string, string>> {
  const objects = await new Helm(helm).render(namespace, { files: [] })
  const written = objects.map((object) => stringify(adapted(object as unknown as JsonObject), { lineWidth: 0 }))
  const definitions = globSync(join(crdFolder, '*.yaml'))
    .sort()
    .map((file) => readFileSync(file, 'utf8'))
  return new Map([
    ['kustomize/base/crds.yaml', definitions.join('')],
    ['kustomize/base/gatehouse.yaml', `${header('the chart in deploy/helm/gatehouse')}${written.join('---\n')}`],
    ['argocd/argocd-cm.yaml', argoConfiguration()],
  ])
}

/** Argo CD's settings for each kind: it takes no pattern of kinds. */
function argoConfiguration(): string {
  const script = readFileSync(join(import.meta.dirname, 'argocd/health.lua'), 'utf8')
  const kinds = [
    ...configResources.map(({ kind, group }) => `${group}_${kind.kind}`),
    `${tokenGrants.group}_TokenGrant`,
  ]
  const entries = kinds.map((kind) => [`resource.customizations.health.${kind}`, script])
  const map = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'argocd-cm', namespace: 'argocd' },
    data: Object.fromEntries(entries),
  }
  return `${header('health.lua')}${stringify(map, { lineWidth: 0, aliasDuplicateObjects: false })}`
}

/** Without the labels of Helm, which doesn't manage these objects, and for the namespace that an overlay chooses. */
function adapted(object: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(object), (key, value) => {
    if (typeof value === 'string') return value.replace(`kubernetes:${namespace}/`, 'kubernetes:$(POD_NAMESPACE)/')
    if (key !== 'labels') return value
    const { 'helm.sh/chart': _chart, 'app.kubernetes.io/managed-by': _by, ...labels } = value
    return labels
  })
}

if (import.meta.main) {
  for (const [file, text] of await gitopsFiles(await helmBinary())) writeFileSync(join(import.meta.dirname, file), text)
}
