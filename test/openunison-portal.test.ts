import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { titleOf } from '#config/load/set-aside.ts'
import { expectDocumented, loadCharts } from '#testing/kubernetes/driven-charts.ts'
import { projectSets } from '#testing/kubernetes/project-sets.ts'

const folder = join(import.meta.dirname, 'openunison-portal')

/** What is set aside, with the reason. */
const aside = (names: readonly string[], values?: string, more?: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    loadCharts(names, values, more).found.flatMap((found) =>
      found.cause === undefined ? [] : [[titleOf(found), found.cause.message] as const],
    ),
  )

/** SAML is outside of this product, and every portal has the mechanism. */
const saml = { 'AuthenticationMechanism "saml2"': expect.stringContaining('use OpenID Connect') }

describe('objects in the form of', () => {
  const logins = ['login-openid-connect', 'login-active-directory', 'login-github']

  test.each(logins)('a portal with %s are served, apart from SAML', (login) => {
    expect(aside(['portal', login])).toEqual(saml)
    const { configuration } = loadCharts(['portal', login])
    const applications = configuration?.applications.map(({ name }) => name)
    expect(applications).toEqual(
      expect.arrayContaining(['portal', 'token', 'logout', 'check-session', 'k8sidp', 'complete-login']),
    )
    expect([...(configuration?.targets.keys() ?? [])]).toContain('accounts')
  })

  test('a portal with a login by SAML serves no login, and says what to use', () => {
    const left = aside(['portal', 'login-saml'])
    expect(left).toMatchObject({
      'AuthenticationChain "enterprise-idp"': expect.stringContaining('use OpenID Connect'),
      'Application "portal"': expect.stringContaining('SAML2Auth'),
    })
    const none = { portal: 'not served', kubectl: 'not served', namespaces: '–', dashboards: 'not served' }
    expectDocumented('Login portal, SAML 2.0', ['portal', 'login-saml'], { login: 'not served', ...none })
  })

  test('namespaces on request are served, apart from Git', () => {
    expect(aside(['portal', 'login-openid-connect', 'namespaces'])).toEqual({
      ...saml,
      'Workflow "publish-namespace"': expect.stringContaining('use a pipeline of the Git server'),
    })
    const { configuration } = loadCharts(['portal', 'login-openid-connect', 'namespaces'])
    expect([...(configuration?.workflows.keys() ?? [])].sort()).toEqual(['jit', 'new-namespace', 'view-namespace'])
  })

  test.each(Object.entries(projectSets))('projects with %s groups are served, and their login', (model, sets) => {
    const names = ['portal', 'login-active-directory', 'projects', ...sets]
    const more = {
      ACME_ADMINISTRATORS: 'cn=platform,dc=acme,dc=test',
      ACME_JDBC: 'jdbc:postgresql://db.acme.test/people',
    }
    const values = { ACME_GROUPS: model, ...more }
    expect(aside(names, '', values)).toEqual(saml)
    const { configuration } = loadCharts(names, '', values)
    expect([...(configuration?.workflows.keys() ?? [])]).toEqual(expect.arrayContaining(['jitdb', 'new-project']))
  })

  test('privileged access are served', () => {
    expect(aside(['portal', 'login-openid-connect', 'privileged-access'])).toEqual(saml)
  })

  test('a token service are served, apart from what the chart makes of the endpoints', () => {
    const names = ['portal', 'login-openid-connect', 'token-service']
    expect(aside(names)).toEqual({
      ...saml,
      'Application "workload-token"': expect.stringContaining('an identity provider (a Trust) or the token service'),
    })
    const { issues, configuration } = loadCharts(names)
    const warnings = issues.flatMap(({ level, path }) => (level === 'warning' && path.startsWith('sts') ? [path] : []))
    expect(warnings).toEqual(['sts.image', 'sts.openunison', 'sts.endpoints[0].clusters', 'sts.endpoints[0].injector'])

    const [endpoint, ...others] = configuration?.stsEndpoints ?? []
    expect(others).toEqual([])
    expect(endpoint?.endpoint).toMatchObject({ name: 'acme', issuer: 'https://tokens.acme.test', clusters: ['k8s'] })
    expect(endpoint?.pods).toMatchObject({ label: 'acme-role', tokenVariable: 'ACME_TOKEN_FILE', explicitTrust: true })
    const { urls = [] } = configuration?.applications.find(({ name }) => name === 'sts.endpoints') ?? {}
    expect(urls.map(({ uri }) => uri)).toEqual(['/acme/token', '/acme/issuer-docs'])
    const injector = configuration?.applications.find(({ name }) => name === 'workload-injector')
    expect(injector?.urls.map(({ uri, filters }) => [uri, filters.length])).toEqual([
      ['/k8s/webhooks/v1/injector-acme', 1],
    ])
  })

  test('trusts that exchange tokens of users are served', () => {
    const { configuration } = loadCharts(['portal', 'login-openid-connect', 'token-service'])
    const [issuer] = configuration?.issuers ?? []
    const trusts = issuer?.trusts.map(({ clientId, chain, exchange }) => [clientId, chain, exchange?.audiences])
    expect(trusts).toEqual([
      ['kubernetes', 'login-service', undefined],
      ['orders', 'login-service', undefined],
      ['sts-orders', 'workloads', ['orders']],
    ])
  })

  test('more clusters are served', () => {
    const names = ['portal', 'login-openid-connect', 'more-clusters']
    expect(aside(names)).toEqual(saml)
    const { configuration } = loadCharts(names)
    const blue = configuration?.issuers.find(({ name }) => name === 'cluster-idp-blue')
    expect(blue?.subjectFilters?.map(({ className }) => className)).toEqual([
      'filters.ClusterGroups2Attribute',
      'filters.Group2Attribute',
    ])
    expect(blue?.claimNames).toEqual(['sub', 'roles', 'cluster', 'groups'])
    expect(blue?.claims.reads.map(({ attribute }) => attribute)).toEqual(['sub', 'roles', 'groups'])
  })
})

test('every file is loaded by a test', () => {
  const names = ['portal', 'login-openid-connect', 'login-active-directory', 'login-github', 'login-saml']
  const projects = ['projects', ...Object.values(projectSets).flat()]
  const known = [...names, ...projects, 'more-clusters', 'namespaces', 'privileged-access', 'token-service']
  expect(readdirSync(folder)).toEqual(Array.from(new Set(known), (name) => `${name}.yaml`).sort())
})
