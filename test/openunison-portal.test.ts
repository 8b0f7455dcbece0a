import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { buildConfiguration } from '#config/load.ts'
import { titleOf } from '#config/set-aside.ts'

const folder = join(import.meta.dirname, 'openunison-portal')

/** Loads objects in the form of OpenUnison's charts. */
function load(names: readonly string[]) {
  const files = names.map((name) => ({ name, text: readFileSync(join(folder, `${name}.yaml`), 'utf8') }))
  const sources = { files, keys: new Map<string, string>(), problems: [] }
  const environment = { OU_HOST: 'portal.acme.test' }
  return buildConfiguration(sources, { folder: '/nowhere', catalog, environment, strictSecrets: false })
}

/** What is set aside, with the reason. */
const aside = (names: readonly string[]): Record<string, string | undefined> =>
  Object.fromEntries(
    load(names).found.flatMap((found) =>
      found.cause === undefined ? [] : [[titleOf(found), found.cause.message] as const],
    ),
  )

/** SAML is outside of this product, and every portal has the mechanism. */
const saml = { 'AuthenticationMechanism "saml2"': expect.stringContaining('use OpenID Connect') }

describe('objects in the form of', () => {
  const logins = ['login-openid-connect', 'login-active-directory', 'login-github']

  test.each(logins)('a portal with %s are served, apart from SAML', (login) => {
    expect(aside(['portal', login])).toEqual(saml)
    const { configuration } = load(['portal', login])
    const applications = configuration?.applications.map(({ name }) => name)
    expect(applications).toEqual(
      expect.arrayContaining(['portal', 'token', 'logout', 'check-session', 'k8sidp', 'complete-login']),
    )
    expect([...(configuration?.targets.keys() ?? [])]).toContain('accounts')
  })

  test('namespaces on request are served, apart from Git', () => {
    expect(aside(['portal', 'login-openid-connect', 'namespaces'])).toEqual({
      ...saml,
      'Workflow "publish-namespace"': expect.stringContaining('use a pipeline of the Git server'),
    })
    const { configuration } = load(['portal', 'login-openid-connect', 'namespaces'])
    expect([...(configuration?.workflows.keys() ?? [])].sort()).toEqual(['jit', 'new-namespace', 'view-namespace'])
  })

  test('privileged access are served', () => {
    expect(aside(['portal', 'login-openid-connect', 'privileged-access'])).toEqual(saml)
  })

  test('a token service are served, apart from the token, which has an endpoint of its own', () => {
    expect(aside(['portal', 'login-openid-connect', 'token-service'])).toEqual({
      ...saml,
      'Application "workload-token"': expect.stringContaining('params.'),
    })
    const { issues } = load(['portal', 'login-openid-connect', 'token-service'])
    expect(issues.map(({ message }) => message)).toContainEqual(expect.stringContaining('sts.endpoints'))
  })
})

test('every file is loaded by a test', () => {
  const names = ['portal', 'login-openid-connect', 'login-active-directory', 'login-github']
  const known = [...names, 'namespaces', 'privileged-access', 'token-service'].map((name) => `${name}.yaml`)
  expect(readdirSync(folder).sort()).toEqual(known.sort())
})
