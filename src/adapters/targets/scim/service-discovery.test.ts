import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { silentLogger } from '#kernel/logger.ts'
import { standardProfile } from './profiles.ts'
import type { ScimConnection, ScimRequest } from './scim-connection.ts'
import { ServiceDiscovery } from './service-discovery.ts'

/** A service with these documents; a code means a refusal with it. */
function discover(documents: Record<string, JsonObject | 'NOT_FOUND' | 'TARGET_FAILED' | 'TARGET_UNREACHABLE'>) {
  const calls: string[] = []
  const time = { now: 0 }
  const call = async ({ path }: ScimRequest) => {
    calls.push(path)
    const document = documents[path] ?? 'NOT_FOUND'
    if (typeof document === 'string') throw new GatewayError(document, path)
    return { status: 200, body: document, etag: undefined }
  }
  const connection = { call } as unknown as ScimConnection
  return {
    discovery: new ServiceDiscovery(connection, standardProfile, () => new Date(time.now), silentLogger),
    documents,
    calls,
    time,
  }
}

test('a service that does not describe itself has PATCH, filters, the standard schemas and nothing else', async () => {
  const { discovery } = discover({})
  const features = await discovery.features()
  expect(features).toMatchObject({ patch: true, bulk: undefined, filter: true, sort: false, etag: false })
  expect(features.pages).toEqual({ cursor: false, index: true })
  expect(features.users.resolveAttribute('emails.value', true)).toBeDefined()
  expect(features.groups.resolveAttribute('displayName', true)).toBeDefined()
})

test('features are cached, read once for all callers, and refreshed in the background', async () => {
  const { discovery, documents, calls, time } = discover({ '/ServiceProviderConfig': { etag: { supported: true } } })
  await Promise.all([discovery.features(), discovery.features(), discovery.features()])
  expect(calls).toHaveLength(3)
  documents['/ServiceProviderConfig'] = { etag: { supported: false } }
  time.now += 11 * 60_000
  expect((await discovery.features()).etag).toBe(true)
  await new Promise((resolve) => setImmediate(resolve))
  expect((await discovery.features()).etag).toBe(false)
  documents['/ServiceProviderConfig'] = 'TARGET_UNREACHABLE'
  time.now += 11 * 60_000
  for (const _ of [1, 2]) expect((await discovery.features()).etag).toBe(false)
  expect(calls).toHaveLength(9)
})

test('one that refuses is asked again soon, and one that does not answer is an error', async () => {
  const refusing = discover({ '/ServiceProviderConfig': 'TARGET_FAILED' })
  expect((await refusing.discovery.features()).bulk).toBeUndefined()
  refusing.documents['/ServiceProviderConfig'] = { bulk: { supported: true, maxOperations: 5 } }
  refusing.time.now += 31_000
  await refusing.discovery.features()
  await new Promise((resolve) => setImmediate(resolve))
  expect((await refusing.discovery.features()).bulk).toMatchObject({ maxOperations: 5 })
  const silent = discover({ '/Schemas': 'TARGET_UNREACHABLE' })
  await expect(silent.discovery.features()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  expect(silent.discovery.known).toBeUndefined()
})

test('attributes beyond the standard are known as far as they are readable', async () => {
  const badge = 'urn:x:Badge'
  const { discovery } = discover({
    '/ResourceTypes': { Resources: [{ name: 'User', schemaExtensions: [{ schema: badge.toUpperCase() }, 7] }] },
    '/Schemas': {
      Resources: [
        {
          id: badge,
          oddity: true,
          attributes: [
            { name: 'number', type: 'integer', x: 1, subAttributes: [] },
            { name: 'bad name!' },
            { name: '__proto__' },
            { name: 'strange', type: 'quantum' },
            7,
            { name: 'NUMBER', type: 'string' },
          ],
        },
        {
          id: 'urn:ietf:params:scim:schemas:core:2.0:Group',
          attributes: [{ name: 'description' }, { name: 'members' }],
        },
        { id: 'urn:x:Other', attributes: [{ name: 'other' }] },
        'nonsense',
      ],
    },
  })
  const { users, groups } = await discovery.features()
  expect(users.resolveAttribute(`${badge}:number`, true)?.attribute.name).toBe('NUMBER')
  for (const name of ['bad name!', '__proto__', 'strange'])
    expect(users.resolveAttribute(`${badge}:${name}`)).toBeUndefined()
  expect(users.resolveAttribute('urn:x:Other:other')).toBeUndefined()
  expect(groups.resolveAttribute('description', true)).toBeDefined()
  expect(groups.resolveAttribute('members.value', true)).toBeDefined()
})
