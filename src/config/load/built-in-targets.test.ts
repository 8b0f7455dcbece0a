import { describe, expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { buildConfiguration } from './load.ts'

const workflow = (target: string): string => `
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: {name: w}
spec:
  tasks: |-
    - taskType: customTask
      className: com.tremolosecurity.provisioning.tasks.CreateK8sObject
      params:
        targetName: ${target}
        template: "{apiVersion: v1, kind: Namespace, metadata: {name: $n$}}"
    - taskType: customTask
      className: com.tremolosecurity.provisioning.tasks.DeleteK8sObject
      params: {targetName: ${target}, url: /api/v1/namespaces/x}
`
const target = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: {name: k8s}
spec:
  className: targets.Kubernetes
  params:
    - {name: url, value: "https://other.test"}
    - {name: token, value: t}
`
const inCluster = { KUBERNETES_SERVICE_HOST: '10.0.0.1' }

function load(files: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const sources = { files: files.map((text, i) => ({ name: `${i}.yaml`, text })), problems: [], keys: new Map() }
  const { configuration, issues } = buildConfiguration(sources, { folder: '/none', catalog, environment })
  return {
    targets: Array.from(configuration?.targets ?? [], ([name, { at }]) => `${name} ${at}`),
    issues: issues.map(({ level, message }) => `${level}: ${message}`),
  }
}

describe('the built-in target k8s', () => {
  test('exists where it is named or could be chosen, and a Target of that name replaces it', () => {
    expect(load([workflow('k8s')], inCluster)).toEqual({ targets: ['k8s built in'], issues: [] })
    expect(load([workflow('$cluster$')], inCluster).targets).toEqual(['k8s built in'])
    expect(load([workflow('$cluster$')]).targets).toEqual([])
    expect(load([workflow('k8s'), target]).targets).toEqual(['k8s 1.yaml:4:12'])
    expect(load([workflow('k9s')], inCluster).issues).toHaveLength(2)
  })

  test('is reported once in each document outside of a cluster', () => {
    const { targets, issues } = load([workflow('k8s')])
    expect(targets).toEqual(['k8s built in'])
    expect(issues).toEqual([expect.stringContaining('warning: "k8s" is the cluster that Gatehouse runs in')])
  })
})
