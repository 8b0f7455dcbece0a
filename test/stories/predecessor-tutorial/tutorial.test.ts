import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { checkCommand } from '#cli/commands/check.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { FakeKubernetesApi } from '#testing/kubernetes/fake-kubernetes-api.ts'

const config = 'test/stories/predecessor-tutorial/config'
/** Three parts, like service-account tokens; only the API server can verify it. */
const token = [{ alg: 'RS256' }, { exp: 4_000_000_000 }, 'signature']
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .join('.')

let cluster: FakeKubernetesApi
let gateway: GatewayProcess
let dataFolder: string

beforeAll(async () => {
  cluster = await FakeKubernetesApi.start()
  const groups = ['system:serviceaccounts', 'system:authenticated']
  const audiences = ['https://kubernetes.default.svc']
  cluster.tokens.set(token, { username: 'system:serviceaccount:openunison:scim-gateway', groups, audiences })
  dataFolder = mkdtempSync(join(tmpdir(), 'gatehouse-story-'))
  gateway = await startGatewayProcess({
    config,
    dataFolder,
    environment: { OU_HOST: '127.0.0.1', K8S_URL: cluster.url, ORCHESTRA_SECRETS_SOURCE_K8S_TOKEN: 'reviewer' },
  })
})
afterAll(async () => {
  await gateway?.stop()
  await cluster?.close()
  rmSync(dataFolder, { recursive: true, force: true })
})

async function call(method: string, path: string, body?: unknown, bearer = token) {
  const headers: Record<string, string> = { authorization: `Bearer ${bearer}`, accept: 'application/scim+json' }
  if (body !== undefined) headers['content-type'] = 'application/scim+json'
  const response = await fetch(`${gateway.url}/api/scim-gateway${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  // The application has cookiesEnabled: false.
  expect(response.headers.get('set-cookie')).toBeNull()
  if (text !== '') expect(response.headers.get('content-type')).toMatch(/^application\/scim\+json/)
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

describe("OpenUnison's SCIM gateway tutorial", () => {
  test('loads; check warns of the attribute that nothing produces, naming both positions', async () => {
    const lines: string[] = []
    vi.stubEnv('OU_HOST', 'gateway.test')
    vi.stubEnv('K8S_URL', 'https://k8s.test')
    onTestFinished(() => void vi.unstubAllEnvs())
    const code = await checkCommand(['--config', config], {
      stdout: (line) => lines.push(line),
      stderr: (line) => lines.push(line),
    })
    expect(code).toBe(0)
    const mentions = lines.filter((line) => line.includes('"email"'))
    expect(mentions.some((line) => /^workflows\.yaml:\d+:\d+: warning: .*application\.yaml:\d+:\d+/.test(line))).toBe(
      true,
    )
    expect(mentions.some((line) => line.startsWith('application.yaml:'))).toBe(true)
    expect(lines.some((line) => line.includes('delete-group-from-target'))).toBe(true)
  })

  test('one: a user is read', async () => {
    expect(await call('GET', '/Users/mmosley')).toEqual({
      status: 200,
      body: {
        id: 'mmosley',
        schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
        userName: 'mmosley',
        name: { givenName: 'Matt', familyName: 'Mosley' },
        emails: [{ type: 'work', primary: true, value: 'mmosley@nodomain.io' }],
        groups: ['group1', 'group2', 'group3'].map((name) => ({
          value: `group:${name}`,
          display: name,
          $ref: `https://127.0.0.1/api/scim-gateway/Groups/group:${name}`,
        })),
        meta: { resourceType: 'User', location: `${gateway.url}/api/scim-gateway/Users/mmosley` },
      },
    })
  })

  test("a user's groups have the ids of the groups, and users are found by them", async () => {
    const { groups } = (await call('GET', '/Users/mmosley')).body
    for (const { value, display } of groups as { value: string; display: string }[]) {
      expect((await call('GET', `/Groups/${value}`)).body).toMatchObject({ id: value, displayName: display })
      const filter = encodeURIComponent(`groups.value eq "${value}" and userName eq "mmosley"`)
      expect((await call('GET', `/Users?filter=${filter}`)).body).toMatchObject({ totalResults: 1 })
    }
  })

  test('two: the workflow creates a user, with the attributes that it provisions', async () => {
    const created = await call('POST', '/Users', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: 'jjackson',
      name: { givenName: 'Jennifer', familyName: 'Jackson' },
      emails: [{ value: 'jjackson@nodomain.io', type: 'work', primary: true }],
      active: true,
    })
    expect(created).toMatchObject({
      status: 201,
      body: { id: 'jjackson', userName: 'jjackson', name: { givenName: 'Jennifer', familyName: 'Jackson' } },
    })
    expect(created.body).not.toHaveProperty('emails')
    expect((await call('GET', '/Users/jjackson')).body).toEqual(created.body)
  })

  test('a user that the target has is found, and not added again', async () => {
    const again = await call('POST', '/Users', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: 'mmosley',
      name: { givenName: 'Another', familyName: 'Mosley' },
    })
    expect(again).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } })
    expect((await call('GET', '/Users/mmosley')).body).toMatchObject({ name: { givenName: 'Matt' } })
  })

  test('three: the user joins a group, and nothing else changes', async () => {
    const before = (await call('GET', '/Users/jjackson')).body
    expect(before).not.toHaveProperty('groups')
    const added = await call('PATCH', '/Groups/group2', {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
      Operations: [{ op: 'add', path: 'members', value: [{ value: 'jjackson', type: 'User' }] }],
    })
    expect(added.status).toBe(204)
    const { groups, ...user } = (await call('GET', '/Users/jjackson')).body
    expect(user).toEqual(before)
    expect(groups.map(({ display }: { display: string }) => display)).toEqual(['group2'])
    expect((await call('GET', '/Groups/group2')).body.members).toContainEqual(
      expect.objectContaining({ value: 'jjackson', type: 'User' }),
    )
  })

  test('a PATCH has a list of operations, with a known op, a known path and members by value', async () => {
    const operation = { op: 'add', path: 'members', value: [{ value: 'jjackson', type: 'User' }] }
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
    for (const body of [
      { schemas, Operations: operation },
      { schemas },
      { schemas, Operations: [{ ...operation, op: 'join' }] },
      { schemas, Operations: [{ ...operation, path: 'member' }] },
      { schemas, Operations: [{ ...operation, value: [{ type: 'User' }] }] },
    ]) {
      expect([body, (await call('PATCH', '/Groups/group3', body)).status]).toEqual([body, 400])
    }
    expect((await call('GET', '/Users/jjackson')).body.groups).toHaveLength(1)
  })

  test('four: reading back shows the group and the unchanged attributes', async () => {
    expect(await call('GET', '/Users/jjackson')).toMatchObject({
      status: 200,
      body: { name: { givenName: 'Jennifer', familyName: 'Jackson' }, groups: [{ value: 'group:group2' }] },
    })
    expect((await call('GET', '/Users/mmosley')).body.groups).toHaveLength(3)
  })

  test('a PATCH of the user changes attributes, and no memberships', async () => {
    const changed = await call('PATCH', '/Users/jjackson', {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
      Operations: [{ op: 'replace', path: 'name.givenName', value: 'Jen' }],
    })
    expect(changed.status).toBe(200)
    expect((await call('GET', '/Users/jjackson')).body).toMatchObject({
      name: { givenName: 'Jen', familyName: 'Jackson' },
      groups: [{ value: 'group:group2' }],
    })
  })

  test('groups of a user are read-only: no change of the user changes them', async () => {
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
    for (const operation of [
      { op: 'add', path: 'groups', value: [{ value: 'group3' }] },
      { op: 'remove', path: 'groups' },
    ]) {
      const refused = await call('PATCH', '/Users/jjackson', { schemas, Operations: [operation] })
      expect(refused).toMatchObject({ status: 400, body: { scimType: 'mutability' } })
    }
    const { body } = await call('GET', '/Users/jjackson')
    expect((await call('PUT', '/Users/jjackson', { ...body, groups: [{ value: 'group3' }] })).status).toBe(200)
    expect((await call('GET', '/Users/jjackson')).body.groups).toEqual(body.groups)
    expect((await call('GET', '/Groups/group3')).body.members).not.toContainEqual(
      expect.objectContaining({ value: 'jjackson' }),
    )
  })

  test('the user leaves the group by the same workflow, and keeps all attributes', async () => {
    const removed = await call('PATCH', '/Groups/group2', {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
      Operations: [{ op: 'remove', path: 'members', value: [{ value: 'jjackson', type: 'User' }] }],
    })
    expect(removed.status).toBe(204)
    const { body } = await call('GET', '/Users/jjackson')
    expect(body).toMatchObject({ userName: 'jjackson', name: { givenName: 'Jen', familyName: 'Jackson' } })
    expect(body.groups ?? []).toEqual([])
  })

  test('five: the user is deleted; deleting again is 404', async () => {
    expect((await call('DELETE', '/Users/jjackson')).status).toBe(204)
    expect((await call('GET', '/Users/jjackson')).status).toBe(404)
    expect((await call('DELETE', '/Users/jjackson')).status).toBe(404)
  })

  test('a group cannot be deleted, since its workflow does not exist', async () => {
    expect((await call('DELETE', '/Groups/group1')).status).toBe(501)
  })

  test('another service account is denied, an unknown token rejected, and an unreachable API server is 503', async () => {
    const other = `${token}x`
    const groups = ['system:serviceaccounts']
    const audiences = ['https://kubernetes.default.svc']
    cluster.tokens.set(other, { username: 'system:serviceaccount:openunison:other', groups, audiences })
    expect((await call('GET', '/Users/mmosley', undefined, other)).status).toBe(403)
    expect((await fetch(`${gateway.url}/api/scim-gateway/Users/mmosley`)).status).toBe(401)
    expect((await call('GET', '/Users/mmosley', undefined, `${token}y`)).status).toBe(401)
    cluster.override = (_request, response) => response.writeHead(500).end()
    expect((await call('GET', '/Users/mmosley', undefined, `${token}z`)).status).toBe(503)
    cluster.override = undefined
  })
})
