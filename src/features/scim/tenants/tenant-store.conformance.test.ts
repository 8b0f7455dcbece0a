import { expect, test } from 'vitest'
import { newTokenText } from '#features/scim/tokens/client-token.ts'
import { newId } from '#kernel/ids.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { tenantAudit } from './tenant-audit.ts'
import { mostTenants } from './tenant-store.ts'

const tenant = (name = 'acme', path = `/tenants/${name}/scim`, host = 'idm.example.com') => ({
  name,
  host,
  path,
  profile: 'okta' as const,
  createdBy: 'Grace',
})
const row = (action: 'add' | 'replace' | 'delete') =>
  tenantAudit(action, ['scimTenant', 'acme'], 'acme', { requestor: 'Grace' })
const token = (client: string) => ({ id: newId(), client, name: 'default', text: newTokenText(), createdBy: 'Grace' })

onEachDatabase('tenants', (freshUrl) => {
  test('are added, listed by name in every process, disabled, enabled and deleted', async () => {
    const { one, two } = await openStores(await freshUrl())
    expect(await one.tenants.add(tenant('zenith'))).toEqual({
      ...tenant('zenith'),
      version: 1,
      created: expect.any(Date),
    })
    await one.tenants.add(tenant(), [row('add')])
    expect((await two.tenants.list()).map(({ name }) => name)).toEqual(['acme', 'zenith'])
    const seen = { name: 'acme', version: 1, by: 'Ada' }
    const disabled = await two.tenants.setDisabled(seen, true, [row('replace')])
    expect(disabled).toMatchObject({ version: 2, disabled: expect.any(Date), disabledBy: 'Ada' })
    // Another operator has seen the former version.
    for (const change of [
      one.tenants.setDisabled({ ...seen, by: 'Eve' }, false, [row('replace')]),
      one.tenants.remove({ ...seen, by: 'Eve' }, [row('delete')]),
    ]) {
      await expect(change).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    }
    const enabled = await one.tenants.setDisabled({ ...seen, version: 2 }, false)
    expect(enabled).toEqual({ ...tenant(), version: 3, created: disabled.created })
    await expect(one.tenants.remove({ ...seen, version: 3 })).rejects.toMatchObject({ code: 'CONFLICT' })
    await one.tenants.setDisabled({ ...seen, version: 3 }, true)
    const given = token('acme')
    await one.clientTokens.add(given)
    // Without a look at the configuration.
    expect(await two.clientTokens.find(given.text)).toBeUndefined()
    await two.tenants.setDisabled({ ...seen, version: 4 }, false)
    expect(await one.clientTokens.find(given.text)).toMatchObject({ client: 'acme', isOfTenant: true })
    await one.tenants.setDisabled({ ...seen, version: 5 }, true)
    expect(await one.tenants.remove({ ...seen, version: 6 }, [row('delete')])).toBe(1)
    expect(await two.tenants.get('acme')).toBeUndefined()
    expect(await two.clientTokens.find(given.text)).toBeUndefined()
    expect((await one.audit.list({ limit: 9 })).rows.map(({ action }) => action)).toEqual(['delete', 'replace', 'add'])
    await expect(one.tenants.remove({ ...seen, version: 6 })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('have a name and an address that no other has, also in a race', async () => {
    const { one, two } = await openStores(await freshUrl())
    const tries = Array.from({ length: 6 }, (_, n) => (n % 2 === 0 ? one : two).tenants.add(tenant(), [row('add')]))
    const outcomes = await Promise.allSettled(tries)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason.code).toBe('CONFLICT')
    expect((await one.audit.list({ limit: 9 })).rows).toHaveLength(1)
    for (const path of ['/tenants/acme/scim', '/tenants/acme', '/tenants/acme/scim/users']) {
      await expect(one.tenants.add(tenant('other', path))).rejects.toMatchObject({ code: 'CONFLICT' })
    }
    // A part of a segment is not a prefix, and hosts are apart.
    await one.tenants.add(tenant('beside', '/tenants/acme/scim2'))
    await one.tenants.add(tenant('elsewhere', '/tenants/acme/scim', 'other.example.com'))
  })

  test('have names and addresses in one spelling only', async () => {
    const { one } = await openStores(await freshUrl())
    const odd: readonly [name?: string, path?: string, host?: string][] = [
      ...['', 'Acme', 'a b', '-a', '../a', 'a/b', 'a\0', '1a', 'a'.repeat(42), 'okta', 'generic', 'ä'].map(
        (name) => [name, '/tenants/acme/scim'] as [string, string],
      ),
      ...[
        ...[
          '',
          '/',
          '/scim',
          '/tenants',
          '/scim/',
          '/tenants/acme/',
          '/tenants//acme',
          '/tenants/acme/../b',
          '/tenants/..',
        ],
        ...[
          '/tenants/a%2fb',
          '/tenants/a%2e%2e',
          '/Tenants/acme',
          '/tenants/Acme',
          '/tenants/a b',
          '/auth/acme',
          '/portal',
        ],
        ...[
          'tenants/acme',
          '/tenants/acme?x',
          '/tenants/acme#x',
          '/tenants/a\n',
          '/tenants/.',
          '/tenants/a.b',
          '/scimx/a',
        ],
        ...['/tenants/a/b/c/d/e', `/tenants/${'a'.repeat(64)}`, '/tenants/a\0', '/tenants/#[HOST]', '/tenants/-a'],
      ].map((path) => ['acme', path] as [string, string]),
      ...['', '*', 'Idm.example.com', 'a b', 'https://a', 'a:80', 'a/b', '#[X]', '-a', 'a-', 'a'.repeat(254)].map(
        (host) => ['acme', '/tenants/acme', host] as [string, string, string],
      ),
    ]
    for (const [name, path, host] of odd) {
      await expect(one.tenants.add(tenant(name, path, host)), `${name} ${path} ${host}`).rejects.toMatchObject({
        code: 'BAD_REQUEST',
      })
    }
    expect(await one.tenants.list()).toEqual([])
    for (const name of ['a\0', '\ud800', '']) expect(await one.tenants.get(name)).toBeUndefined()
  })

  test('do not get tokens that a client of their name has already', async () => {
    const { one, two } = await openStores(await freshUrl())
    await one.clientTokens.add(token('acme'))
    await expect(two.tenants.add(tenant())).rejects.toMatchObject({ code: 'CONFLICT' })
    await one.clientTokens.revoke('acme', 'default', 'Grace')
    await two.tenants.add(tenant())
  })

  test('are a thousand at most', async () => {
    const { one, sql } = await openStores(await freshUrl())
    await one.tenants.add(tenant('first'))
    const values = Array.from(
      { length: mostTenants - 1 },
      (_, n) => `('t${n}', 'h', '/scim/t${n}', 'tolerant', 1, 1, 'x')`,
    )
    await sql(
      `insert into scim_tenants (name, host, path, profile, version, created, created_by) values ${values.join(',')}`,
    )
    await expect(one.tenants.add(tenant())).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await one.tenants.list()).toHaveLength(mostTenants)
  })
})
