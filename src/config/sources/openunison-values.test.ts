import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import type { LoadOptions } from '#config/load/load.ts'
import { loadText } from '#testing/modules/check-text.ts'

const names = ['OU_HOST', 'K8S_URL', 'NUMBER', 'OWN', 'OU_JDBC_PASSWORD', 'openunison.static-secret.suffix']
const object = `### uses.yaml
apiVersion: openunison.tremolo.io/v1
kind: PortalUrl
metadata: { name: p }
spec:
  label: '${names.map((name) => `[#[${name}:unset]]`).join('')}'
  url: https://example.com
  azRules: [{ scope: dn, constraint: o=Tremolo }]
`

/** The values of the names above in a configuration with that document. */
function substituted(document: string, options: Partial<LoadOptions> = {}): unknown {
  const { objects = [] } = loadText(`${object}${document}`, catalog, { keepObjects: true, ...options })
  return objects.map(({ value }) => (value as { spec: { label: string } }).spec.label)[0]
}

const openUnison = `### orchestra.yaml
apiVersion: openunison.tremolo.io/v6
kind: OpenUnison
metadata: { name: orchestra }
spec:
  hosts: [{ names: [{ env_var: OU_HOST, name: portal.example.com }, { name: without a variable }, 5] }, none]
  non_secret_data: [{ name: NUMBER, value: 1.10 }, { name: OWN, value: object }, { value: nameless }]
  secret_data: [OU_JDBC_PASSWORD, 5]
  source_secret: held
`

test('the OpenUnison object has values; a values document and the environment win', () => {
  expect(substituted(openUnison)).toBe('[portal.example.com][unset][1.10][object][unset][]')
  const own = `${openUnison}### values.yaml\nOWN: values\n`
  expect(substituted(own, { environment: { OU_HOST: 'env.example.com' } })).toBe(
    '[env.example.com][unset][1.10][values][unset][]',
  )
})

test('its secret_data come from the secret that it names', () => {
  const clusterSecrets = (secret: string, key: string) => (secret === 'held' ? `secret ${key}` : undefined)
  expect(substituted(openUnison, { clusterSecrets })).toContain('[secret OU_JDBC_PASSWORD]')
})

test('without that secret, serve refuses and check warns, but only where the value is used', () => {
  const document = openUnison.replace('[OU_JDBC_PASSWORD, 5]', '[OWN_SECRET, NOT_USED]')
  const uses =
    document +
    object
      .replace('uses.yaml', 'more.yaml')
      .replace('name: p', 'name: q')
      .replace('[#[OU_HOST:unset]]', '#[OWN_SECRET]')
  const problem =
    '#[OWN_SECRET]: no such secret (held/OWN_SECRET in the secrets folder, HELD_OWN_SECRET in the environment)'
  for (const strictSecrets of [true, false]) {
    const { issues } = loadText(uses, catalog, { strictSecrets })
    expect(issues.map(({ level, message }) => ({ level, message }))).toEqual([
      { level: strictSecrets ? 'error' : 'warning', message: problem },
    ])
  }
})

test('the values of a chart are read; impersonation changes the address of the API', () => {
  const chart = (impersonation: boolean) => `### orchestra-values.yaml
network: { openunison_host: portal.example.com, api_server_host: api.example.com, k8s_url: 'https://10.0.0.1:6443' }
enable_impersonation: ${impersonation}
openunison: { secret_ext: -v2, non_secret_data: { OWN: chart, NUMBER: 1.10 }, secrets: [OU_JDBC_PASSWORD] }
`
  const environment = { ORCHESTRA_SECRETS_SOURCE_OU_JDBC_PASSWORD: 'held' }
  expect(substituted(chart(false), { environment })).toBe(
    '[portal.example.com][https://10.0.0.1:6443][1.10][chart][held][-v2]',
  )
  expect(substituted(chart(true))).toContain('[https://api.example.com]')
})

test('an OpenUnison object without a spec, or with one of another form, has no values', () => {
  for (const spec of ['', 'spec: 5', 'spec: { hosts: 1, non_secret_data: { a: b }, secret_data: x }']) {
    const text = `### orchestra.yaml\napiVersion: openunison.tremolo.io/v6\nkind: OpenUnison\n${spec}\n`
    expect(substituted(text)).toBe('[unset][unset][unset][unset][unset][]')
  }
})
