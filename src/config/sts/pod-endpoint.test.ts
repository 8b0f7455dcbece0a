import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { stsPresets } from '#config/kinds/sts.ts'
import { presetInjection } from '#config/kinds/sts-preset.ts'
import { buildConfiguration } from '#config/load/load.ts'
import { inject } from '#protocols/admission/inject.ts'
import type { Container } from '#protocols/admission/pod.ts'
import type { PodEndpoint } from '#protocols/admission/pod-endpoint.ts'
import type { PodAccount } from '#protocols/admission/pod-request.ts'
import { cartAccount, injectorSettings, podOf } from '#testing/sts/injector-fixture.ts'

const target = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: k8s }
spec:
  className: targets.Kubernetes
  params: { url: https://k8s.example.com, tokenFile: /run/token }
`

function endpoints(...specs: readonly object[]): PodEndpoint[] {
  const written = specs.map((spec, i) => ({
    name: `e${i}`,
    audience: 'https://consumer.example.com',
    path: `/sts/e${i}`,
    issuer: { host: `issuer${i}.example.com` },
    azRules: [{ scope: 'filter', constraint: '(saname=a)' }],
    ...spec,
  }))
  const files = [
    { name: 'target.yaml', text: target },
    { name: 'values.yaml', text: JSON.stringify({ sts: { endpoints: written } }) },
  ]
  const sources = { origin: 'a test', files, keys: new Map<string, string>(), problems: [] }
  const { issues, configuration } = buildConfiguration(sources, { folder: '.', catalog, environment: {} })
  expect(issues.filter(({ level }) => level === 'error')).toEqual([])
  return configuration?.stsEndpoints.flatMap(({ pods }) => pods ?? []) ?? []
}

interface Given {
  readonly account?: Partial<PodAccount>
  readonly annotations?: Record<string, string>
  readonly env?: NonNullable<Container['env']>
}

/** What the container of a pod with the labels of all endpoints gets. */
function admit(built: readonly PodEndpoint[], { account, annotations = {}, env = [] }: Given = {}) {
  const labels = Object.fromEntries(built.map(({ label }) => [`tremolo.io/${label}`, 'true']))
  const given = podOf({ labels, annotations, spec: { containers: [{ name: 'app', env }] } })
  const {
    pod,
    faults,
    warnings,
    endpoints: names,
  } = inject(given, built, injectorSettings, { ...cartAccount, ...account })
  const sidecar = pod.spec.initContainers?.[0]?.env ?? []
  const files = sidecar.find(({ name }) => name === 'STS_FILES')?.value ?? undefined
  return {
    faults,
    warnings,
    names,
    variables: Object.fromEntries((pod.spec.containers?.[0]?.env ?? []).map(({ name, value }) => [name, value])),
    file: files === undefined ? undefined : (JSON.parse(files.slice(files.indexOf(' '))) as unknown),
    filePath: files?.split(' ', 1)[0],
  }
}

const role = 'arn:aws:iam::123456789012:role/cart'
const folder = '/var/run/secrets/gatehouse/e0'
const [client, tenant] = ['11111111-2222-3333-4444-555555555555', '99999999-8888-7777-6666-555555555555']

describe('what a preset injects', () => {
  test('aws: the role, a session name and the region', () => {
    const built = endpoints({ preset: 'aws', injector: { label: 'aws', settings: { region: 'eu-central-1' } } })
    expect(admit(built, { annotations: { 'tremolo.io/aws': role } })).toMatchObject({
      faults: [],
      variables: {
        AWS_WEB_IDENTITY_TOKEN_FILE: `${folder}/token`,
        AWS_ROLE_ARN: role,
        AWS_ROLE_SESSION_NAME: 'shop-cart',
        AWS_REGION: 'eu-central-1',
        AWS_DEFAULT_REGION: 'eu-central-1',
        AWS_STS_REGIONAL_ENDPOINTS: 'regional',
      },
    })
  })

  test('aws: a session name fits into 64 characters, and two workloads never share one', () => {
    const built = endpoints({ preset: 'aws', injector: { label: 'aws', settings: { role } } })
    const nameOf = (account: Partial<PodAccount>): string =>
      String(admit(built, { account }).variables['AWS_ROLE_SESSION_NAME'])
    const names = ['a', 'b'].map((end) => nameOf({ namespace: 'n'.repeat(63), name: `${'s'.repeat(250)}${end}` }))
    for (const name of names) expect(name).toMatch(/^[\w+=,.@-]{64}$/)
    expect(new Set(names).size).toBe(2)
  })

  test('azure: client, tenant and authority', () => {
    const built = endpoints({
      preset: 'azure',
      audience: 'api://AzureADTokenExchange',
      injector: { label: 'azure', settings: { 'tenant-id': tenant } },
    })
    expect(admit(built, { annotations: { 'tremolo.io/azure.client-id': client } }).variables).toEqual({
      AZURE_FEDERATED_TOKEN_FILE: `${folder}/token`,
      AZURE_CLIENT_ID: client,
      AZURE_TENANT_ID: tenant,
      AZURE_AUTHORITY_HOST: 'https://login.microsoftonline.com/',
    })
  })

  test('gcp: a credential file, whose provider is the audience', () => {
    const provider = 'projects/123/locations/global/workloadIdentityPools/clusters/providers/shop'
    const built = endpoints({
      preset: 'gcp',
      audience: `https://iam.googleapis.com/${provider}`,
      injector: { label: 'gcp' },
    })
    const { variables, file, filePath } = admit(built, { annotations: { 'tremolo.io/gcp.project': 'shop-prod' } })
    expect(variables).toEqual({
      GOOGLE_IDENTITY_TOKEN_FILE: `${folder}/token`,
      GOOGLE_APPLICATION_CREDENTIALS: `${folder}/credentials.json`,
      GOOGLE_CLOUD_PROJECT: 'shop-prod',
      CLOUDSDK_CORE_PROJECT: 'shop-prod',
    })
    const credentials = {
      type: 'external_account',
      audience: `//iam.googleapis.com/${provider}`,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: 'https://sts.googleapis.com/v1/token',
      credential_source: { file: `${folder}/token`, format: { type: 'text' } },
    }
    expect([file, filePath]).toEqual([credentials, `${folder}/credentials.json`])
    const account = 'cart@shop-prod.iam.gserviceaccount.com'
    const impersonating = admit(built, { annotations: { 'tremolo.io/gcp': account } }).file
    expect(impersonating).toEqual({
      ...credentials,
      service_account_impersonation_url: `https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${account}:generateAccessToken`,
    })
  })

  test('vault: address, role and auth path', () => {
    const settings = { address: 'https://bao.example.com:8200', role: '${namespace}-${saname}' }
    const built = endpoints({ preset: 'vault', injector: { label: 'bao', settings } })
    expect(admit(built).variables).toEqual({
      VAULT_JWT_FILE: `${folder}/token`,
      VAULT_ADDR: 'https://bao.example.com:8200',
      VAULT_ROLE: 'shop-cart',
      VAULT_AUTH_PATH: 'jwt',
    })
  })

  test('kubernetes: a kubeconfig with the token file', () => {
    const settings = { server: 'https://api.example.com:6443', 'certificate-authority': 'A'.repeat(200) }
    const built = endpoints({ preset: 'kubernetes', injector: { label: 'other', settings } })
    const { variables, file } = admit(built)
    expect(variables).toEqual({ KUBERNETES_TOKEN_FILE: `${folder}/token`, KUBECONFIG: `${folder}/kubeconfig` })
    expect(file).toMatchObject({
      clusters: [{ cluster: { server: settings.server, 'certificate-authority-data': 'A'.repeat(200) } }],
      users: [{ user: { tokenFile: `${folder}/token` } }],
      'current-context': 'workload',
    })
  })

  test('anthropic: the token', () => {
    const built = endpoints({ preset: 'anthropic', injector: { label: 'claude' } })
    expect(admit(built).variables).toEqual({ ANTHROPIC_IDENTITY_TOKEN_FILE: `${folder}/token` })
  })

  test('no preset, as OpenUnison writes it: two variables', () => {
    const injector = { label: 'x', token_environment_variable_name: 'T', label_value_environment_variable_name: 'V' }
    const built = endpoints({ injector })
    expect(admit(built, { annotations: { 'tremolo.io/x': 'v' } }).variables).toEqual({ T: `${folder}/token`, V: 'v' })
    expect(admit(built).faults).toEqual([expect.stringContaining('needs an annotation of the same name')])
  })
})

test.each(stsPresets)('the guide names all settings and variables of %s', (preset) => {
  const rows = readFileSync('docs/guides/injected-settings.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|'))
  const first = rows.findIndex((row) => row.startsWith(`| \`${preset}\``))
  const next = rows.findIndex((row, i) => i > first && /^\| `[a-z]+`/.test(row))
  const text = rows.slice(first, next < 0 ? undefined : next).join('\n')
  const { tokenVariable, settings, identity, other, file } = presetInjection(preset)
  const variables = [tokenVariable, ...Object.keys(identity), ...Object.keys(other), ...(file ? [file.variable] : [])]
  for (const name of [...settings.map((one) => one.name), ...variables])
    expect(text).toMatch(new RegExp(`\`${name}[\`=]`))
})

describe('where a setting comes from', () => {
  const built = endpoints({ preset: 'aws', injector: { label: 'aws', settings: { role, region: 'eu-west-1' } } })
  const [pods, accounts] = ['arn:aws:iam::123456789012:role/pod', 'arn:aws:iam::123456789012:role/account']
  test.each([
    ['the configuration', {}, {}, role],
    ['the ServiceAccount', {}, { 'tremolo.io/aws': accounts }, accounts],
    ['the ServiceAccount, by the long name', {}, { 'tremolo.io/aws.role': accounts }, accounts],
    ['the pod', { 'tremolo.io/aws': pods }, { 'tremolo.io/aws': accounts }, pods],
    ['the pod, by the long name', { 'tremolo.io/aws.role': pods }, { 'tremolo.io/aws': accounts }, pods],
    [
      'the ServiceAccount where the pod’s is empty',
      { 'tremolo.io/aws': ' ' },
      { 'tremolo.io/aws': accounts },
      accounts,
    ],
  ])('%s', (_, annotations, ofAccount, expected) => {
    const { variables } = admit(built, { annotations, account: { annotations: ofAccount } })
    expect([variables['AWS_ROLE_ARN'], variables['AWS_REGION']]).toEqual([expected, 'eu-west-1'])
  })

  test.each([
    ['not of its form', { 'tremolo.io/aws.region': 'Frankfurt' }, 'must be a value such as eu-central-1'],
    ['with a line end', { 'tremolo.io/aws': `${role}\nX=1` }, 'not plain text'],
    ['too long', { 'tremolo.io/aws': role + 'x'.repeat(3000) }, 'too long'],
  ])('a value that is %s leaves the pod without the token', (_, annotations, text) => {
    const { faults, variables } = admit(built, { annotations })
    expect([faults, variables]).toEqual([[expect.stringContaining(text)], {}])
  })

  test('an unreadable ServiceAccount is a fault only if a value is missing', () => {
    const problem = 'the API server did not answer'
    const enough = admit(built, { account: { problem } })
    expect(enough.faults).toEqual([])
    expect(enough.warnings).toEqual([`annotations of the ServiceAccount shop/cart do not count: ${problem}`])
    const bare = endpoints({ preset: 'aws', injector: { label: 'aws' } })
    expect(admit(bare, { account: { problem } }).faults).toEqual([expect.stringContaining(`shop/cart: ${problem}`)])
  })
})

describe('variables', () => {
  test('of the configuration are texts with attributes and settings, and never empty', () => {
    const environment = {
      TEAM: 'team-${namespace}',
      WHO: '${cluster}/${saname}',
      FILE: '${token_file}',
      R: '${region}',
      X: '$(Y)',
    }
    const built = endpoints({ preset: 'aws', injector: { label: 'aws', settings: { role }, environment } })
    const { variables } = admit(built)
    expect(variables).toMatchObject({ TEAM: 'team-shop', WHO: 'k8s/cart', FILE: `${folder}/token`, X: '$$(Y)' })
    expect(Object.keys(variables)).not.toContain('R')
    expect(Object.keys(admit(built, { account: { cluster: undefined } }).variables)).not.toContain('WHO')
    expect(Object.values(variables)).not.toContain('')
  })

  test('that a container sets stay, without a fault if they name no identity', () => {
    const built = endpoints({ preset: 'aws', injector: { label: 'aws', settings: { role, region: 'eu-west-1' } } })
    const { variables, faults } = admit(built, { env: [{ name: 'AWS_REGION', value: 'us-east-1' }] })
    expect([variables['AWS_REGION'], variables['AWS_ROLE_ARN'], faults]).toEqual(['us-east-1', role, []])
  })

  test('that a container sets replace a missing setting without a fault', () => {
    const built = endpoints({
      preset: 'azure',
      audience: 'api://AzureADTokenExchange',
      injector: { label: 'azure', settings: { 'client-id': client } },
    })
    expect(admit(built).faults).toEqual([
      'the label "tremolo.io/azure" needs the annotation "tremolo.io/azure.tenant-id" on the pod or its ServiceAccount, so there is no token of "e0"',
    ])
    const own = admit(built, { env: [{ name: 'AZURE_TENANT_ID', value: tenant }] })
    expect([own.faults, own.variables['AZURE_CLIENT_ID'], own.names]).toEqual([[], client, ['e0']])
  })

  test('that two endpoints set are a fault that names both', () => {
    const one = { preset: 'aws', injector: { label: 'a', settings: { role } } }
    const built = endpoints(one, { ...one, injector: { label: 'b', settings: { role } } })
    expect(admit(built).faults).toEqual([
      '"e0" sets AWS_WEB_IDENTITY_TOKEN_FILE too, so the variables of "e1" are not set in it',
    ])
  })
})
