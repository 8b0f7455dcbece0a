import { readdirSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { RunCommand } from '#cli/command-line/command-line.ts'
import { blocksOf } from '#testing/stories/documented-commands.ts'
import { checkCommand } from './check.ts'
import { importCommand } from './import.ts'

let work = ''
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'gatehouse-import-'))
})
afterEach(() => rm(work, { recursive: true }))

async function run(command: RunCommand, ...args: string[]) {
  const out: string[] = []
  const err: string[] = []
  const code = await command(args, { stdout: (line) => out.push(line), stderr: (line) => err.push(line) })
  return { code, out, err, text: out.join('\n') }
}

const importFrom = (source: string, ...more: string[]) =>
  run(importCommand, '--openunison', join(work, source), '--out', join(work, 'out'), ...more)
const check = () => run(checkCommand, '--config', join(work, 'out'))
const written = (path: string) => readFile(join(work, 'out', path), 'utf8')
const files = () =>
  readdirSync(join(work, 'out'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(work, 'out').length + 1))
    .sort()

const secretText = 'correct horse battery staple'
const object = (kind: string, name: string, spec: string, version = 'v1'): string => `---
apiVersion: openunison.tremolo.io/${version}
kind: ${kind}
metadata:
  name: ${name}
  namespace: openunison
  uid: 7d1f
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{}'
    argocd.argoproj.io/sync-wave: "30"
spec:
${spec.replaceAll(/^/gm, '  ')}
status: { digest: x }
`

/** Objects in the form of the charts: a portal with a database, and a dashboard behind the reverse proxy. */
const chart = `# Source: orchestra/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata: { name: openunison }
${object(
  'OpenUnison',
  'orchestra',
  `image: example.com/openunison:1
hosts:
  - names:
      - { env_var: OU_HOST, name: portal.example.com }
non_secret_data:
  - { name: K8S_CLUSTER_NAME, value: one }
  - { name: UNUSED, value: x }
secret_data: [DB_PASSWORD, unisonKeystorePassword]
source_secret: orchestra-secrets-source`,
  'v6',
)}
${object('AuthenticationMechanism', 'login-form', 'className: com.tremolosecurity.proxy.auth.FormLoginAuthMech\nuri: /auth/form')}
${object('AuthenticationMechanism', 'saml2', 'className: com.tremolosecurity.proxy.auth.SAML2Auth\nuri: /auth/saml')}
${object(
  'AuthenticationChain',
  'login',
  `level: 20
root: o=Tremolo
authMechs:
  - name: login-form
    required: required
    params: { uidAttr: uid, uidIsFilter: "false" }`,
)}
${object('AuthenticationChain', 'enterprise', 'level: 20\nauthMechs:\n  - name: saml2\n    required: required')}
${object(
  'Target',
  'people',
  `className: com.tremolosecurity.provisioning.core.providers.BasicDB
params:
  - { name: driver, value: org.postgresql.Driver }
  - { name: url, value: "jdbc:postgresql://#[OU_HOST]:5432/people" }
  - { name: user, value: people }
  - { name: password, value: "#[DB_PASSWORD]" }
  - { name: validationQuery, value: SELECT 1 }
  - { name: maxCons, value: "10" }
  - { name: maxIdleCons, value: "10" }
  - { name: userTable, value: users }
  - { name: userPrimaryKey, value: id }
  - { name: userName, value: login }
  - { name: groupMode, value: None }
targetAttributes:
  - { name: login, source: uid, sourceType: user }`,
)}
${object('PortalUrl', 'wiki', 'label: "Wiki of #[K8S_CLUSTER_NAME]"\nurl: https://#[OU_HOST]/wiki\nazRules: [{ scope: dn, constraint: o=Tremolo }]')}
${object('PortalUrl', 'empty', 'label: "#[NOWHERE:default]"\nurl: https://example.com\nazRules: [{ scope: dn, constraint: o=Tremolo }]')}
${object(
  'Application',
  'dashboard',
  `isApp: true
urls:
  - hosts: ["#[OU_HOST]"]
    uri: /dashboard
    authChain: enterprise
    azRules: [{ scope: dn, constraint: o=Tremolo }]
    filterChain:
      - className: com.tremolosecurity.proxy.filters.K8sInjectImpersonation
        params: {}`,
)}
---
apiVersion: v1
kind: Secret
metadata: { name: orchestra-secrets-source }
data: { DB_PASSWORD: ${Buffer.from(secretText).toString('base64')}, OTHER: eA== }
`

async function writeChart(): Promise<void> {
  await mkdir(join(work, 'charts'))
  await writeFile(join(work, 'charts', 'portal.yaml'), chart)
}

test('rendered charts become a folder that check accepts, and a report', async () => {
  await writeChart()
  const { code, out, text } = await importFrom('charts')
  expect(code).toBe(0)
  expect(out[0]).toContain('5 of 8 objects are ready to serve, 3 are set aside')
  expect(text).toContain(
    '"com.tremolosecurity.proxy.auth.SAML2Auth" is a class of OpenUnison that is not served; use OpenID',
  )
  expect(text).toContain('AuthenticationMechanism saml2: spec.className')
  expect(text).toContain('depends on AuthenticationMechanism "saml2", which is set aside')
  expect(text.indexOf('SAML2Auth" is a class of OpenUnison')).toBeLessThan(text.indexOf('depends on Auth'))
  expect(text).toMatch(/Not part of the configuration\n {2}Deployment +1/)
  expect(text).toContain('orchestra-secrets-source/DB_PASSWORD')
  expect(text).toContain('the URLs of these applications get 503: dashboard.')
  expect(files()).toEqual([
    'authchains/login.yaml',
    'authmechs/login-form.yaml',
    'orchestra-secrets-source.yaml',
    'portalurls/empty.yaml',
    'portalurls/wiki.yaml',
    'set-aside/applications/dashboard.yaml',
    'set-aside/authchains/enterprise.yaml',
    'set-aside/authmechs/saml2.yaml',
    'targets/people.yaml',
    'values.yaml',
  ])
  const checked = await check()
  expect(checked.code).toBe(0)
  expect(checked.text).not.toContain('error')
})

test('objects keep what is written, without the fields of a cluster', async () => {
  await writeChart()
  await importFrom('charts')
  const target = await written('targets/people.yaml')
  expect(target).toContain('value: "#[DB_PASSWORD]"')
  expect(target).toContain('argocd.argoproj.io/sync-wave: "30"')
  for (const field of ['uid:', 'last-applied', 'status:']) expect(target).not.toContain(field)
  expect(await written('values.yaml')).toBe(`# The values of #[NAME] in the objects of this folder.

K8S_CLUSTER_NAME: one
OU_HOST: portal.example.com
`)
  expect(await written('set-aside/authchains/enterprise.yaml')).toMatch(
    /^# Set aside:\n# depends on AuthenticationMechanism "saml2", which is set aside\n/,
  )
})

test('secrets are written only on request, for their owner only, and never shown', async () => {
  await writeChart()
  await importFrom('charts')
  expect(files().some((path) => path.startsWith('secrets'))).toBe(false)
  await rm(join(work, 'out'), { recursive: true })
  const { text, err } = await importFrom('charts', '--with-secrets')
  expect(await written('secrets/orchestra-secrets-source/DB_PASSWORD')).toBe(secretText)
  expect((await stat(join(work, 'out/secrets/orchestra-secrets-source/DB_PASSWORD'))).mode & 0o777).toBe(0o600)
  expect((await stat(join(work, 'out/secrets'))).mode & 0o777).toBe(0o700)
  expect(files().filter((path) => path.startsWith('secrets'))).toHaveLength(1)
  const shown = [
    text,
    ...err,
    ...(await Promise.all(
      files()
        .filter((path) => path.endsWith('.yaml'))
        .map(written),
    )),
  ]
  expect(shown.join('\n')).not.toContain(secretText)
  expect((await check()).out).toEqual([])
})

test('secrets of objects that are set aside are taken along as well', async () => {
  const secretParams = 'secretParams: [{ name: key, secretName: aside, secretKey: key }]'
  const key =
    '{ scope: cn, issuer: "https://x.test/", audience: x, realm: x, noMatchOU: x, validationKey: signing, lookupFilter: "(uid=x)" }'
  const objects = [
    object(
      'AuthenticationMechanism',
      'saml2',
      `className: com.tremolosecurity.proxy.auth.SAML2Auth\nuri: /auth/saml\n${secretParams}`,
    ),
    object(
      'AuthenticationMechanism',
      'jwt',
      'className: com.tremolosecurity.proxy.auth.oauth2.OAuth2JWT\nuri: /auth/jwt',
    ),
    object(
      'AuthenticationChain',
      'both',
      `level: 20\nauthMechs:\n  - { name: saml2, required: required }\n  - { name: jwt, required: required, params: ${key} }`,
    ),
    ...[
      'aside\nstringData: { key: of-a-mechanism }',
      'signing\nstringData: { tls.crt: of-a-chain, tls.key: of-no-one }',
    ].map((text) => `---\napiVersion: v1\nkind: Secret\nmetadata: { name: ${text.replace('\n', ' }\n')}\n`),
  ]
  await writeFile(join(work, 'charts.yaml'), objects.join(''))
  const { text } = await importFrom('charts.yaml', '--with-secrets')
  expect(text).toContain('1 of 3 objects')
  expect(text).toContain('secrets has 2, readable by you only')
  expect(text).not.toContain('Not found')
  expect(files().filter((path) => path.startsWith('secrets'))).toEqual(['secrets/aside/key', 'secrets/signing/tls.crt'])
  expect(text).not.toMatch(/of-a-|of-no/)
})

test('webhooks by which OpenUnison checks its objects are named with what removes them', async () => {
  const webhook = (name: string, more: string, group = 'openunison.tremolo.io') => `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: "${name}" }
webhooks:
  - { name: workflows-openunison.tremolo.io, rules: [{ apiGroups: [${group}], operations: [CREATE], resources: [workflows] }]${more} }
`
  const webhooks = [
    webhook('openunison-workflow-validation-orchestra', ''),
    webhook('optional', ', failurePolicy: Ignore'),
    webhook('other', '', 'apps'),
    webhook('x; reboot', ''),
  ]
  await writeFile(join(work, 'charts.yaml'), `${chart}${webhooks.join('')}`)
  const { text } = await importFrom('charts.yaml')
  expect(text.match(/kubectl delete .*/g)).toEqual([
    'kubectl delete validatingwebhookconfiguration openunison-workflow-validation-orchestra',
  ])
  expect(text).toContain('failed calling webhook')
  await rm(join(work, 'out'), { recursive: true })
  await writeFile(join(work, 'charts.yaml'), chart)
  expect((await importFrom('charts.yaml')).text).not.toContain('webhook')
})

test('names of groups that the directory does not return are in the report, with the name to use', async () => {
  const params = '{ host: ad.acme.test, searchBase: "dc=acme,dc=test", dnAttribs: member }'
  const rule = (name: string) => `azRules: [{ scope: filter, constraint: "(groups=${name})" }]`
  const url = (name: string, group: string) =>
    object('PortalUrl', name, `label: x\nurl: https://x.test\n${rule(group)}`)
  const objects = [
    object('DirectoryInsert', 'ad', `className: directory.Ldap\nsuffix: ou=ad,o=Tremolo\nparams: ${params}`),
    url('right', 'cn=admins,dc=acme,dc=test'),
    url('wrong', 'cn=admins,ou=ad,o=Tremolo'),
    url('same', 'cn=admins,ou=ad,o=Tremolo'),
  ]
  await writeFile(join(work, 'charts.yaml'), objects.join(''))
  const { text } = await importFrom('charts.yaml')
  const place = 'spec.azRules[0].constraint'
  expect(text).toContain(`
Names of groups to correct
  the directory does not return this name: DirectoryInsert "ad" keeps names as the server has them. Use "cn=admins,dc=acme,dc=test"
    PortalUrl same: ${place}
    PortalUrl wrong: ${place}

`)
})

/** In the form of the charts: what is behind the reverse proxy, with the identity provider of the cluster. */
function proxied({ impersonates = true, issuer = '/auth/idp/k8sIdp' } = {}): string {
  const impersonation = impersonates
    ? '[{ className: com.tremolosecurity.proxy.filters.K8sInjectImpersonation, params: {} }]'
    : '[]'
  const app = (name: string, host: string, url: string, filters = '[]') =>
    object(
      'Application',
      name,
      `cookieConfig: { sessionCookieName: tremolosession, domain: "#[${host}]", timeout: 900 }
urls:
  - hosts: ["#[${host}]"]
    azRules: [{ scope: dn, constraint: o=Tremolo }]
    filterChain: ${filters}
${url.replaceAll(/^/gm, '    ')}`,
    )
  const idp = `uri: ${issuer}
idp:
  className: com.tremolosecurity.idp.providers.OpenIDConnectIdP
  params: {}
  mappings: { strict: true, map: [{ targetAttributeName: sub, targetAttributeSource: uid, sourceType: user }] }
  trusts:
    - name: kubernetes
      params: { clientID: kubernetes, publicEndpoint: "true", redirectURI: ["http://localhost:8000"], authChainName: login }`
  const link = (name: string, url: string) =>
    object('PortalUrl', name, `label: ${name}\nurl: ${url}\nazRules: [{ scope: dn, constraint: o=Tremolo }]`)
  const names = [
    'OU_HOST, name: portal.acme.test',
    'K8S_DASHBOARD_HOST, name: k8sdb.acme.test',
    'K8S_API_HOST, name: k8sapi.acme.test',
  ]
  return [
    object(
      'OpenUnison',
      'orchestra',
      `hosts: [{ names: [${names.map((one) => `{ env_var: ${one} }`).join()}] }]\nsecret_data: []`,
      'v6',
    ),
    object(
      'AuthenticationMechanism',
      'login-form',
      'className: com.tremolosecurity.proxy.auth.FormLoginAuthMech\nuri: /auth/form',
    ),
    object(
      'AuthenticationChain',
      'login',
      'level: 20\nroot: o=Tremolo\nauthMechs: [{ name: login-form, required: required, params: { uidAttr: uid } }]',
    ),
    app('k8sidp', 'OU_HOST', idp),
    app(
      'headlamp',
      'OU_HOST',
      'uri: /headlamp\nproxyTo: "https://headlamp.openunison.svc${fullURI}"\nauthChain: login',
      impersonation,
    ),
    app(
      'dashboard',
      'K8S_DASHBOARD_HOST',
      'uri: /\nproxyTo: "https://kubernetes-dashboard.kubernetes-dashboard.svc${fullURI}"\nauthChain: login',
      impersonation,
    ),
    app('apiserver', 'K8S_API_HOST', 'uri: /\nproxyTo: "${k8s_url}${fullURI}"\nauthChain: login', impersonation),
    link('headlamp', 'https://#[OU_HOST]/headlamp/'),
    link('k8sdb', 'https://#[K8S_DASHBOARD_HOST]'),
    link('headlamps', '/headlamps'),
    link('wiki', 'https://wiki.acme.test/headlamp'),
  ].join('')
}

test.each([true, false])(
  'what was behind the reverse proxy has files that say what serves it instead, with impersonation %s',
  async (impersonates) => {
    await writeFile(join(work, 'charts.yaml'), proxied({ impersonates }))
    const { text } = await importFrom('charts.yaml')
    const instead = files().filter((path) => path.startsWith('set-aside/instead/'))
    expect(instead).toEqual([
      'set-aside/instead/headlamp-trust.yaml',
      'set-aside/instead/kube-oidc-proxy-values.yaml',
      'set-aside/instead/kubernetes-dashboard-oauth2-proxy-values.yaml',
      'set-aside/instead/kubernetes-dashboard-trust.yaml',
    ])
    expect(text).toContain('Instead of the reverse proxy\n  Headlamp has a login of its own:\n')
    for (const path of instead) expect(text).toContain(join(work, 'out', path))
    const issuer = 'https://portal.acme.test/auth/idp/k8sIdp'
    expect(await written('set-aside/instead/headlamp-trust.yaml')).toContain(`-oidc-idp-issuer-url=${issuer}\n`)
    expect(parse(await written('set-aside/instead/kube-oidc-proxy-values.yaml'))).toEqual({
      enable_impersonation: true,
      network: { openunison_host: 'portal.acme.test', api_server_host: 'k8sapi.acme.test' },
      impersonation: { use_jetstack: true, orchestra_release_name: 'orchestra' },
    })

    const guided = async (name: string, path: string) => {
      const text = blocksOf('docs/guides/dashboards.md', 'yaml').find((block) => block.startsWith(`# ${name}\n`)) ?? ''
      const renamed = text
        .replace('https://headlamp.example.com/oidc-callback', '"https://#[HEADLAMP_HOST]/headlamp/oidc-callback"')
        .replaceAll('dashboard.example.com', 'k8sdb.acme.test')
        .replaceAll('https://gatehouse.example.com/auth/idp/people', issuer)
      expect(parse(await written(`set-aside/instead/${path}`))).toEqual(parse(renamed))
    }
    await guided('Trust', 'headlamp-trust.yaml')
    await guided('Trust of the dashboard', 'kubernetes-dashboard-trust.yaml')
    await guided('oauth2-proxy', 'kubernetes-dashboard-oauth2-proxy-values.yaml')

    await mkdir(join(work, 'out', 'trusts'))
    for (const name of ['headlamp', 'kubernetes-dashboard']) {
      await writeFile(
        join(work, 'out', 'trusts', `${name}.yaml`),
        await written(`set-aside/instead/${name}-trust.yaml`),
      )
    }
    await writeFile(
      join(work, 'out', 'values.yaml'),
      `${await written('values.yaml')}HEADLAMP_HOST: headlamp.acme.test\n`,
    )
    await mkdir(join(work, 'out', 'secrets', 'kubernetes-dashboard-login'), { recursive: true })
    await writeFile(join(work, 'out', 'secrets', 'kubernetes-dashboard-login', 'client-secret'), 'random'.repeat(9))
    const checked = await check()
    expect(checked.code).toBe(0)
    expect(checked.text).not.toContain('trusts/')
  },
)

test('links of the portal to what is not served are set aside, and others stay', async () => {
  await writeFile(join(work, 'charts.yaml'), proxied({ issuer: '/auth/idp/own' }))
  const { text } = await importFrom('charts.yaml')
  const links = files().filter((path) => path.includes('portalurls/'))
  expect(links).toEqual([
    'portalurls/headlamps.yaml',
    'portalurls/wiki.yaml',
    'set-aside/portalurls/headlamp.yaml',
    'set-aside/portalurls/k8sdb.yaml',
  ])
  expect(text).toContain('leads to the Application "headlamp", which is not served.')
  expect(await written('set-aside/instead/kube-oidc-proxy-values.yaml')).toContain('/auth/idp/own')
})

test('without an identity provider, nothing is said to serve what was behind the proxy', async () => {
  const other = proxied().replace('clientID: kubernetes', 'clientID: other')
  await writeFile(join(work, 'charts.yaml'), other.replaceAll('k8sapi.acme.test', 'k8s api'))
  const { code, text } = await importFrom('charts.yaml')
  expect(code).toBe(0)
  expect(text).not.toContain('Instead of the reverse proxy')
  expect(files().some((path) => path.includes('instead'))).toBe(false)
})

test('a message that would quote a secret does not', async () => {
  await mkdir(join(work, 'charts'))
  const url = object('PortalUrl', 'wiki', 'label: x\nurl: "#[DB_PASSWORD]"\nazRules: [{ scope: dn, constraint: o=x }]')
  await writeFile(join(work, 'charts', 'all.yaml'), `${chart}${url.replace('name: wiki', 'name: leak')}`)
  const { text } = await importFrom('charts', '--with-secrets')
  expect(text).toContain('PortalUrl leak: spec.url')
  expect(text).toContain('"secret orchestra-secrets-source/DB_PASSWORD" is neither')
  expect(text).not.toContain(secretText)
  expect(await written('set-aside/portalurls/leak.yaml')).not.toContain(secretText)
})

test('a folder that is not empty stays as it is', async () => {
  await writeChart()
  await mkdir(join(work, 'out'))
  await writeFile(join(work, 'out', 'mine.txt'), 'mine')
  const { code, err } = await importFrom('charts')
  expect(code).toBe(1)
  expect(err.join()).toContain('is not empty, so nothing was written')
  expect(files()).toEqual(['mine.txt'])
})

test('what depends on a name that nothing has says so', async () => {
  const workflow = (name: string, task: string) => object('Workflow', name, `tasks: |-\n  - taskType: ${task}`)
  const lost = workflow('lost', 'provision\n    sync: true\n    target: nowhere')
  const caller = workflow('caller', 'callWorkflow\n    name: lost')
  await writeFile(join(work, 'export.yaml'), `${lost}${caller}`)
  const { text } = await importFrom('export.yaml')
  expect(text).toContain('0 of 2 objects are ready to serve, 2 are set aside')
  expect(text).toContain('no target named "nowhere"\n    Workflow lost: spec.tasks[0].target')
  expect(text).toContain('depends on target "nowhere", which does not exist\n    Workflow caller')
  expect(text).not.toContain('gatehouse serve')
})

test('problems of scripts are grouped by what they use, and what only follows from other objects comes last', async () => {
  const script = (name: string, code: string) => object('JavaScript', name, `javascript: |-\n  ${code}`)
  const mechanism = 'className: com.tremolosecurity.proxy.auth.FormLoginAuthMech\nuri: /auth/form'
  const chain = 'level: 20\nroot: o=Data\nauthMechs:\n  - { name: form, required: required, params: { uidAttr: "" } }'
  const params = '{ url: "ldap://127.0.0.1", searchBase: "o=x" }'
  const objects = [
    script('one', 'java.util.UUID.randomUUID()\n  new java.io.File("x")'),
    script('two', 'new java.io.File("x")'),
    object('AuthenticationMechanism', 'form', `${mechanism}\nunknown: x`),
    object('AuthenticationChain', 'login', chain),
    object('DirectoryInsert', 'people', `className: directory.Ldap\nsuffix: ou=people,o=Data\nparams: ${params}`),
  ]
  await writeFile(join(work, 'charts.yaml'), objects.join(''))
  const { text } = await importFrom('charts.yaml')
  expect(text).toMatch(
    /\n {2}the Java type java\.io\.File is not served[^\n]*\n {4}JavaScript one: spec\.javascript, line 2\n {4}JavaScript two: spec\.javascript, line 1\n/,
  )
  const follows =
    '  without the objects that are set aside: "ou=people,o=Data" is neither within the root of the directory'
  expect(text.indexOf(follows), text).toBeGreaterThan(text.indexOf('unknown key "unknown"'))
})

test('a source without values says where they are', async () => {
  await writeFile(join(work, 'link.yaml'), object('PortalUrl', 'wiki', 'label: Wiki\nurl: https://#[OU_HOST]/wiki'))
  expect((await importFrom('link.yaml')).text).toMatch(
    /\n {2}There is neither an OpenUnison object nor the values of a chart[^\n]*\n {2}No value was found for some names\.[^\n]*: OU_HOST\n/,
  )
})

test('a certificate that an object can do without is not said to set it aside', async () => {
  const tokens = object(
    'Application',
    'tokens',
    `isApp: true
urls:
  - hosts: [portal.example.com]
    uri: /tokens
    authChain: anon
    azRules: [{ scope: dn, constraint: o=Tremolo }]
    filterChain:
      - className: com.tremolosecurity.scalejs.token.ws.ScaleToken
        params:
          tokenClassName: com.tremolosecurity.scalejs.KubectlTokenLoader
          displayNameAttribute: sub
          frontPage.title: Tokens
          frontPage.text: Tokens
          logoutURL: /logout
          homeURL: /
          kubectlTemplate: kubectl config
          kubectlUsage: Run this
          oulogin: kubectl oulogin
          k8sCaCertName: portal-ca
          unisonCaCertName: portal-ca
          warnMinutesLeft: "5"`,
  )
  await writeFile(join(work, 'charts.yaml'), tokens)
  const { text } = await importFrom('charts.yaml', '--with-secrets')
  expect(text).toContain('1 of 1 object')
  expect(text).toMatch(
    /\n {2}Not found\. Objects are served without these certificates, [^\n]*\n {4}portal-ca\/tls\.crt\n/,
  )
  expect(text).not.toContain('serve sets aside')
})

test('an export with a List, from one file, with names that lead elsewhere', async () => {
  const item = (name: string) => ({
    apiVersion: 'openunison.tremolo.io/v1',
    kind: 'PortalUrl',
    metadata: { name },
    spec: { label: 'x', url: 'https://example.com', azRules: [{ scope: 'dn', constraint: 'o=x' }] },
  })
  const names = ['../../escape', '.hidden', '\u001b[31mred', 'same/name', 'same.name', '']
  const list = { apiVersion: 'v1', kind: 'List', items: [...names.map(item), 5, null] }
  await writeFile(join(work, 'export.yaml'), JSON.stringify(list))
  const { code, text } = await importFrom('export.yaml')
  expect(code).toBe(0)
  expect(text).not.toContain('\u001b')
  expect(text).toContain('item 7: is not an object')
  expect(files().every((path) => /^(?:set-aside\/)?portalurls\/[\w.-]+\.yaml$/.test(path))).toBe(true)
  expect(files()).toHaveLength(names.length)
  expect(readdirSync(work).sort()).toEqual(['export.yaml', 'out'])
})

const scriptTasks = `- taskType: customTask
  className: com.tremolosecurity.provisioning.customTasks.JavaScriptTask
  params:
    javaScript: |-
      function init(task, params) {}
${' '}
      function doTask(user, request) {  
        return true;
      }
`
const printed = (tasks: string): string =>
  `apiVersion: openunison.tremolo.io/v1\nkind: Workflow\nmetadata:\n  name: greet\n  uid: 7d1f\nspec:\n  tasks: ${tasks}\n`
const inQuotes = String.raw`"- taskType: customTask\n  className: com.tremolosecurity.provisioning.customTasks.JavaScriptTask\n
    \ params:\n    javaScript: |-\n      function init(task, params) {}\n \n      function
    doTask(user, request) {  \n        return true;\n      }\n"`

test.each([
  ['kubectl and kustomize', printed(inQuotes)],
  [
    'PyYAML',
    printed(String.raw`"- taskType: customTask\n  className: com.tremolosecurity.provisioning.customTasks.JavaScriptTask\n\
    \  params:\n    javaScript: |-\n      function init(task, params) {}\n \n    \
    \  function doTask(user, request) {  \n        return true;\n      }\n"`),
  ],
  ['a program that writes blocks', printed(`|\n${scriptTasks.replaceAll(/^/gm, '    ')}`)],
])('one object with long texts as %s print it is imported as from a List', async (_, text) => {
  await writeFile(join(work, 'export.yaml'), text)
  expect((await importFrom('export.yaml')).text).toContain('1 of 1 objects are ready to serve')
  const single = parse(await written('workflows/greet.yaml'))
  await rm(join(work, 'out'), { recursive: true })
  const list = { apiVersion: 'v1', kind: 'List', items: [parse(printed(inQuotes))] }
  await writeFile(join(work, 'export.yaml'), JSON.stringify(list))
  await importFrom('export.yaml')
  expect(single).toEqual(parse(await written('workflows/greet.yaml')))
  expect(single.spec.tasks).toBe(scriptTasks)
})

test('an error in the YAML of a text is one message', async () => {
  const lines = Array.from({ length: 20 }, (_, i) => `  - step ${i}: "open\n`).join('')
  await writeFile(join(work, 'export.yaml'), object('Workflow', 'broken', `tasks: |-\n  - taskType: |- x\n${lines}`))
  const { text } = await importFrom('export.yaml')
  expect(text.match(/YAML: /g)).toHaveLength(1)
  expect((await written('set-aside/workflows/broken.yaml')).match(/^# /gm)).toHaveLength(2)
})

test('values of a chart, certificates and a token service are taken along', async () => {
  await mkdir(join(work, 'charts'))
  const certificates = { good: rootCertificates[0] ?? '', broken: 'no certificate', '../up': rootCertificates[0] ?? '' }
  const listed = Object.entries(certificates).map(([name, pem]) => ({
    name,
    pem_b64: Buffer.from(pem).toString('base64'),
  }))
  await writeFile(
    join(work, 'charts', 'values.yaml'),
    `network: { openunison_host: portal.example.com }
openunison: { non_secret_data: { K8S_CLUSTER_NAME: two } }
trusted_certs: ${JSON.stringify(listed)}
sts: { endpoints: 5 }
`,
  )
  const wiki = object(
    'PortalUrl',
    'wiki',
    'label: "#[K8S_CLUSTER_NAME] #[MISSING]"\nurl: https://#[OU_HOST]/\nazRules: [{ scope: dn, constraint: o=x }]',
  )
  await writeFile(join(work, 'charts', 'wiki.yaml'), wiki)
  const { code, text } = await importFrom('charts')
  expect(code).toBe(0)
  expect(text).toContain('values sts: sts.endpoints')
  expect(text).toContain('No value was found')
  expect(text).toContain('MISSING')
  expect(files().filter((path) => path.startsWith('keys'))).toEqual(['keys/good.crt'])
  expect((await check()).code).toBe(0)
})

test.each([
  [['--out', 'x'], '--openunison is required'],
  [['--openunison', 'x'], '--out is required'],
  [['--openunison', 'kubernetes:Not_A_Name', '--out', 'x'], 'is not kubernetes:NAMESPACE'],
  [['--openunison', '/nowhere/at/all', '--out', 'x'], '/nowhere/at/all does not exist'],
])('%j fails with a reason', async (args, message) => {
  const { code, err } = await run(importCommand, ...args.map((arg) => (arg === 'x' ? join(work, arg) : arg)))
  expect(code).toBeGreaterThan(0)
  expect(err.join('\n')).toContain(message)
})

test('hostile YAML is a problem, and the rest is imported', async () => {
  await writeChart()
  const aliases = Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(9)}]`).join('\n')
  await writeFile(join(work, 'charts', 'bomb.yaml'), `kind: List\napiVersion: v1\na0: &a0 [x]\n${aliases}\nitems: []\n`)
  await writeFile(join(work, 'charts', 'deep.yaml'), '['.repeat(50_000))
  await writeFile(join(work, 'charts', 'proto.yaml'), '__proto__: { kind: Secret }\nconstructor: 1\n')
  const { code, text } = await importFrom('charts')
  expect(code).toBe(0)
  expect(text).toContain('5 of 8 objects')
  expect(text).toMatch(/Could not be read\n.*bomb\.yaml.*\n.*deep\.yaml/)
})

test('a broken document hides no other, and a template of a chart says what it is', async () => {
  const link = (name: string, more = '') =>
    object('PortalUrl', name, `label: x\nurl: https://x.test\nazRules: [{ scope: dn, constraint: o=x }]${more}`)
  await mkdir(join(work, 'charts'))
  const unclosed = link('open', '\nicon: "') + link('two').replaceAll('"', '')
  await writeFile(join(work, 'charts', 'links.yaml'), link('one') + unclosed)
  await writeFile(
    join(work, 'charts', 'template.yaml'),
    `{{ if .Values.on }}\n${link('three', '\nicon: {{ .Values.x }}')}{{ end }}\n`,
  )
  const { text, err } = await importFrom('charts')
  expect(err).toEqual([])
  expect(files()).toEqual(['portalurls/one.yaml', 'portalurls/two.yaml'])
  expect(text).toMatch(/links\.yaml, document 2: Missing closing "quote\n/)
  expect(text).toMatch(/template\.yaml, document 2: [^\n]*what "helm template" makes of it\n/)
})

test('an installation without its directory says so', async () => {
  const chain = object('AuthenticationChain', 'anonymous', 'level: 0\nauthMechs: []')
  await writeFile(join(work, 'charts.yaml'), chain)
  const missing = 'The ConfigMap myvd of the chart orchestra is missing'
  expect((await importFrom('charts.yaml')).text).toContain(missing)
  await rm(join(work, 'out'), { recursive: true })
  const myvd =
    '---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: myvd }\ndata: { myvd.conf: "server.nameSpaces=" }\n'
  await writeFile(join(work, 'charts.yaml'), chain + myvd)
  expect((await importFrom('charts.yaml')).text).not.toContain(missing)
})

test.each([
  ['no kubeconfig', 'a\0b', 'kubeconfig is not a kubeconfig: '],
  [
    'a program without credentials',
    'exec: { apiVersion: client.authentication.k8s.io/v1, command: "false" }',
    'gives no credentials: its program for credentials failed. Log in to the cluster again',
  ],
  [
    'a program that is missing',
    'exec: { apiVersion: client.authentication.k8s.io/v1, command: /nowhere/login }',
    'gives no credentials: spawn /nowhere/login ENOENT',
  ],
  ['no server', 'token: x', 'list openunisons: no answer (connect ECONNREFUSED 127.0.0.1:1). Nothing was written.'],
])('a cluster with %s: a reason, and no folder', async (_, user, message) => {
  const text = user.startsWith('a\0')
    ? user
    : `apiVersion: v1
kind: Config
current-context: one
contexts: [{ name: one, context: { cluster: one, user: one } }]
clusters: [{ name: one, cluster: { server: "https://127.0.0.1:1" } }]
users: [{ name: one, user: { ${user} } }]
`
  await writeFile(join(work, 'kubeconfig'), text)
  const from = ['--openunison', 'kubernetes:openunison', '--kubeconfig', join(work, 'kubeconfig')]
  const { code, err } = await run(importCommand, ...from, '--out', join(work, 'out'))
  expect(code).toBe(1)
  expect(err.join('\n')).toContain(message)
  expect(err).toHaveLength(1)
  expect(readdirSync(work)).toEqual(['kubeconfig'])
})

test('a source without objects writes nothing', async () => {
  await mkdir(join(work, 'charts'))
  await writeFile(join(work, 'charts', 'broken.yaml'), 'a: [')
  const { code, err } = await importFrom('charts')
  expect(code).toBe(1)
  expect(err.join('\n')).toContain('there are no objects of OpenUnison')
  expect(readdirSync(work)).toEqual(['charts'])
})

test('names that differ in case, very long ones, and secrets called like another file each get a file', async () => {
  const link = (name: string, label: string): string =>
    object('PortalUrl', name, `label: "${label}"\nurl: https://example.com\nazRules: [{ scope: dn, constraint: o=x }]`)
  const secrets = ['values', 'a.b', 'a-b', `x${'y'.repeat(240)}`]
  const values = secrets.map((secret, i) =>
    object('OpenUnison', `ou${i}`, `secret_data: [S${i}]\nsource_secret: ${secret}\nnon_secret_data: []`, 'v6'),
  )
  const own = 'LABEL: plain\n'
  const links = [link('wiki', '#[LABEL]'), link('Wiki', 'x'), ...secrets.map((_, i) => link(`s${i}`, `#[S${i}]`))]
  const long = [object('K'.repeat(3_000), 'n', 'a: 1'), link('l'.repeat(3_000), 'x')]
  await writeFile(join(work, 'export.yaml'), [own, ...values, ...links, ...long].join(''))
  const { code } = await importFrom('export.yaml')
  expect(code).toBe(0)
  const names = files().map((path) => path.toLowerCase())
  expect(new Set(names).size).toBe(names.length)
  expect(names).toEqual(expect.arrayContaining(['portalurls/wiki.yaml', 'portalurls/wiki_2.yaml', 'values_2.yaml']))
  expect(await written('values.yaml')).toContain('LABEL: plain')
  expect(await written('values_2.yaml')).toContain('source_secret: values')
  expect((await written('a-b.yaml')) + (await written('a-b_2.yaml'))).toMatch(
    /source_secret: a\.b.*source_secret: a-b/s,
  )
})

test('a secret that begins like another one is not shown in part', async () => {
  await mkdir(join(work, 'charts'))
  const secret = (key: string, text: string): string => `${key}: ${Buffer.from(text).toString('base64')}`
  const values = object('OpenUnison', 'o', 'secret_data: [SHORT, LONG]\nsource_secret: s', 'v6')
  const link = (name: string): string =>
    object('PortalUrl', name.toLowerCase(), `label: x\nurl: "#[${name}]"\nazRules: [{ scope: dn, constraint: o=x }]`)
  const stored = `---\napiVersion: v1\nkind: Secret\nmetadata: { name: s }\ndata: { ${secret('SHORT', 'hunter')}, ${secret('LONG', 'hunter-and-gatherer')} }\n`
  await writeFile(join(work, 'charts', 'all.yaml'), [values, link('SHORT'), link('LONG'), stored].join(''))
  const { text, err } = await importFrom('charts', '--with-secrets')
  expect(text).toMatch(/"secret s\/SHORT" is neither.*"secret s\/LONG" is neither/s)
  const shown = [text, ...err, await written('set-aside/portalurls/long.yaml')].join('\n')
  expect(shown).not.toMatch(/hunter|gatherer/)
})

test('a secret whose name leads elsewhere is not written', async () => {
  await mkdir(join(work, 'charts'))
  const values = object('OpenUnison', 'o', 'secret_data: [PASSWORD]\nsource_secret: ../../escape', 'v6')
  const link = object(
    'PortalUrl',
    'l',
    'label: "#[PASSWORD]"\nurl: https://x.test\nazRules: [{ scope: dn, constraint: o=x }]',
  )
  const stored =
    '---\napiVersion: v1\nkind: Secret\nmetadata: { name: ../../escape }\nstringData: { PASSWORD: hunter }\n'
  await writeFile(join(work, 'charts', 'all.yaml'), [values, link, stored].join(''))
  await importFrom('charts', '--with-secrets')
  expect(files().filter((path) => path.startsWith('secrets'))).toEqual([])
  expect(readdirSync(work).sort()).toEqual(['charts', 'out'])
})

test('a file that is too large, and a link to nowhere as the new folder, are refused', async () => {
  await writeChart()
  await writeFile(join(work, 'huge.yaml'), '')
  await truncate(join(work, 'huge.yaml'), 100 << 20)
  expect((await importFrom('huge.yaml')).err.join()).toContain('is larger than')
  await symlink(join(work, 'nowhere'), join(work, 'out'))
  const { code, err } = await importFrom('charts')
  expect([code, err.join()]).toEqual([1, expect.stringContaining('is a link to a folder that does not exist')])
  expect(readdirSync(work).sort()).toEqual(['charts', 'huge.yaml', 'out'])
})

test('an absent export leaves no data folder behind', async () => {
  const { code, err } = await run(importCommand, join(work, 'absent'), '--data', join(work, 'data'))
  expect([code, err]).toEqual([1, [`gatehouse import: ${join(work, 'absent')} does not exist`]])
  expect(readdirSync(work)).not.toContain('data')
})
