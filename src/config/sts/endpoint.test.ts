import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { buildConfiguration } from '#config/load/load.ts'

const target = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: k8s }
spec:
  className: targets.Kubernetes
  params: { url: https://k8s.example.com, tokenFile: /run/token }
`
const values = `
sts:
  endpoints:
    - name: aws
      audience: sts.amazonaws.com
      path: /sts/aws
      issuer: { host: issuer.example.com }
      azRules: [{ scope: filter, constraint: (saname=a) }]
      injector: { label: aws, token_environment_variable_name: TOKEN_FILE, label_value_environment_variable_name: "" }
`

test('an empty variable name counts as absent, as in existing values', () => {
  const files = [
    { name: 'target.yaml', text: target },
    { name: 'values.yaml', text: values },
  ]
  const sources = { origin: 'a test', files, keys: new Map<string, string>(), problems: [] }
  const { issues, configuration } = buildConfiguration(sources, { folder: '.', catalog, environment: {} })
  expect(issues.filter(({ level }) => level === 'error')).toEqual([])
  const [endpoint] = configuration?.stsEndpoints ?? []
  expect(endpoint?.pods).toMatchObject({ tokenVariable: 'TOKEN_FILE', valueVariable: undefined })
})
