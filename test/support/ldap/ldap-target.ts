import { Attribute, Client } from 'ldapts'
import { ldap } from '#adapters/targets/ldap/ldap.ts'
import type { LdapTarget } from '#adapters/targets/ldap/ldap-target.ts'
import { hasGroups, hasLookups, hasPasswords, type Target, type TargetRequest } from '#sdk/target/target.ts'
import type { Slapd } from '#testing/ldap/slapd.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'

let branches = 0

/** An empty branch, so that tests do not see one another. */
export async function newBranch(slapd: Slapd): Promise<string> {
  const branch = `ou=branch${branches++},${slapd.baseDn}`
  await asAdmin(slapd, (client) => client.add(branch, { objectClass: ['organizationalUnit'] }))
  return branch
}

/** The test's own work, beside the code under test. */
export async function asAdmin<T>(slapd: Slapd, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ url: slapd.url, timeout: 10_000 })
  try {
    await client.bind(slapd.adminDn, slapd.adminPassword)
    return await work(client)
  } finally {
    await client.unbind()
  }
}

export const addEntry = (slapd: Slapd, dn: string, attributes: Record<string, string[]>): Promise<void> =>
  asAdmin(slapd, (client) =>
    client.add(
      dn,
      Object.entries(attributes).map(([type, values]) => new Attribute({ type, values })),
    ),
  )

/** A target on the branch: `account` entries that accept any attribute, found by `uid`. */
export async function openLdap(slapd: Slapd, branch: string, more: ParamValues = {}): Promise<LdapTarget> {
  const issues = noIssues()
  const params: ParamValues = {
    ...('host' in more || 'url' in more ? {} : { url: slapd.url }),
    adminDN: slapd.adminDn,
    adminPasswd: slapd.adminPassword,
    searchBase: branch,
    objectClass: ['account', 'extensibleObject'],
    dnPattern: `uid=\${uid},${branch}`,
    ...more,
  }
  const prepared = ldap.prepare(fakeParams(params, ['adminPasswd']), issues, fakeParseContext())
  if (!issues.ok) throw new Error(issueTexts(issues.list).join('\n'))
  return asLdapTarget(await prepared.create({ ...fakeModuleHost(), name: 'people' }))
}

export const quietRequest: TargetRequest = {
  workflow: { id: 'test', name: 'test' },
  idempotencyKey: 'test/1',
  requestor: 'test',
  params: {},
  log: fakeModuleHost().log,
  audit() {},
}

function asLdapTarget(target: Target): LdapTarget {
  if (!hasLookups(target) || !hasGroups(target) || !hasPasswords(target)) throw new Error('not a whole target')
  return target
}
