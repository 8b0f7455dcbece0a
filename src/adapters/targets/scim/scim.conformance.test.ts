import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { type ScimBehind, scimBehind } from '#testing/scim/scim-behind.ts'
import { type ScimProxy, startScimProxy } from '#testing/scim/scim-proxy.ts'
import { freshBehind, groupNames as groups, openTargetOn } from '#testing/scim/scim-target-fixture.ts'

let behind: ScimBehind
let proxy: ScimProxy

beforeAll(async () => {
  behind = await scimBehind()
  proxy = await startScimProxy(behind.client.base)
}, 60_000)
afterAll(async () => {
  proxy?.close()
})

const attributes = ['emails.value', 'name.givenName', 'title'] as const

describe('a server that supports everything', () => {
  async function open() {
    await freshBehind(behind)
    const target = await openTargetOn(behind)
    return { target, close: async () => target.close() }
  }

  targetConformance('a second gateway', open, { test: (name, run) => test(name, run), attributes, groups })

  test('its versions are returned', async () => {
    expect((await open()).target.keepsVersions).toBe(true)
  })
})

/** No PATCH, no bulk, no sorting, no versions, no cursors, and users without their groups. */
describe('a server that supports little', () => {
  const describeLittle = (config: JsonObject): JsonObject => {
    const none = { supported: false }
    const { pagination: _, ...rest } = config
    return { ...rest, patch: none, bulk: none, sort: none, etag: none }
  }

  async function open() {
    await freshBehind(behind)
    proxy.describe = describeLittle
    proxy.fault = ({ method, path }) => (method === 'PATCH' || path === '/Bulk' ? { status: 501 } : undefined)
    const target = await openTargetOn(behind, { url: proxy.url, memberships: 'group' })
    return { target, close: async () => target.close() }
  }

  targetConformance('by PUT alone', open, { test: (name, run) => test(name, run), attributes, groups })

  test('its declared capabilities are respected', async () => {
    expect((await open()).target.keepsVersions).toBe(false)
    expect(proxy.calls.some(({ method }) => method === 'PUT')).toBe(true)
  })
})
