import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { doctorCommand } from '#cli/commands/doctor.ts'
import { stsCommand } from '#cli/commands/sts.ts'
import { deployedDefinitions } from '#testing/kubernetes/custom-resources.ts'
import { startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import type { KubeClient } from '#testing/kubernetes/kube-client.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { podWithAccount, type StsGateway, startStsGateway } from '#testing/sts/sts-gateway.ts'

const suite = randomUUID().slice(0, 8)
const soon = { timeout: 60_000, interval: 100 }
const incoming = 'gatehouse-sts'

interface Stored {
  readonly metadata: { readonly name: string; readonly generation: number; readonly resourceVersion: string }
  readonly status?: { readonly conditions?: readonly Condition[]; readonly observedGeneration?: number }
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly observedGeneration: number
}

interface EventList {
  readonly items: readonly {
    readonly reason: string
    readonly note: string
    readonly regarding: { readonly name: string }
  }[]
}

/** A namespace with the token of a user who has no rights but those of its grants. */
async function team(cluster: KubeClient, name: string) {
  await cluster.must('POST', '/api/v1/namespaces', { metadata: { name } })
  const developer = { namespace: name, name: 'developer' }
  await cluster.serviceAccount(developer)
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}`
  const rules = [
    { apiGroups: ['gatehouse.dev'], resources: ['tokengrants'], verbs: ['get', 'create', 'update', 'delete'] },
  ]
  await cluster.must('POST', `${rbac}/roles`, { metadata: { name: 'grants' }, rules })
  await cluster.must('POST', `${rbac}/rolebindings`, {
    metadata: { name: 'grants' },
    subjects: [{ kind: 'ServiceAccount', ...developer }],
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'grants' },
  })
  const token = await cluster.token(developer, { seconds: 7200 })
  const path = `/apis/gatehouse.dev/v1/namespaces/${name}/tokengrants`
  const grant = (grantName: string, endpoint: string, ...serviceAccounts: string[]) =>
    cluster.call(
      'POST',
      path,
      {
        apiVersion: 'gatehouse.dev/v1',
        kind: 'TokenGrant',
        metadata: { name: grantName },
        spec: { endpoint, serviceAccounts },
      },
      token,
    )
  const read = async (grantName: string): Promise<Stored> =>
    (await cluster.call<Stored>('GET', `${path}/${grantName}`, undefined, token)).body
  const condition = async (grantName: string): Promise<Condition | undefined> =>
    (await read(grantName)).status?.conditions?.find(({ type }) => type === 'Accepted')
  return {
    name,
    grant,
    read,
    condition,
    remove: (grantName: string) => cluster.call('DELETE', `${path}/${grantName}`, undefined, token),
    /** A token of a new pod of the account. */
    pod: async (account: string): Promise<string> =>
      (await podWithAccount(cluster, { namespace: name, name: account }, `${account}-1`)).tokenFor(incoming),
    reasonOf: (grantName: string) =>
      vi.waitFor(async () => {
        const found = await condition(grantName)
        expect(found?.status).toBe('False')
        return found?.reason
      }, soon),
    accepted: (grantName: string) =>
      vi.waitFor(async () => expect(await condition(grantName)).toMatchObject({ status: 'True' }), soon),
  }
}

async function defineGrants(cluster: KubeClient): Promise<void> {
  const definition = deployedDefinitions().get('tokengrants.yaml')
  if (definition === undefined) throw new Error('there is no definition')
  await cluster.defineKind(definition, '/apis/gatehouse.dev/v1/tokengrants')
}

type Team = Awaited<ReturnType<typeof team>>

onKubernetes('grants of teams', (cluster) => {
  let gateway: StsGateway
  let twin: StsGateway
  let shop: Team

  const endpoint = (name: string, more: object = {}): object => ({
    name,
    audience: name,
    path: `/sts/${name}`,
    issuer: { host: `${name}.example.com` },
    rateLimit: { burst: 1000, perMinute: 60_000 },
    grants: {
      namespaces: [`team-${suite}-*`],
      serviceAccounts: ['cart*', 'basket'],
      maxServiceAccounts: 2,
      maxGrants: 3,
    },
    ...more,
  })
  const closed = endpoint('closed', {
    grants: undefined,
    azRules: [{ scope: 'filter', constraint: '(namespace=nowhere)' }],
  })

  const tokenFile = (token: string): string => {
    const file = join(gateway.dataFolder, 'subject-token')
    writeFileSync(file, token, { mode: 0o600 })
    return file
  }
  /** What a command with the gateway's configuration prints. */
  const command = async (run: typeof stsCommand, ...args: string[]): Promise<string> => {
    const out: string[] = []
    const [action, ...more] = args
    const print = (line: string) => void out.push(line)
    const given = [...(action === undefined ? [] : [action]), '--config', gateway.config, ...more]
    await run(given, { stdout: print, stderr: print })
    return out.join('\n')
  }

  beforeAll(async () => {
    await defineGrants(cluster)
    const options = { sts: { endpoints: [endpoint('open'), closed] }, grants: true }
    ;[gateway, twin] = await Promise.all([startStsGateway(cluster, options), startStsGateway(cluster, options)])
    shop = await team(cluster, `team-${suite}-shop`)
  }, 180_000)

  afterAll(async () => {
    await gateway?.stop()
    await twin?.stop()
  }, 60_000)

  test('a team gives a pod of its namespace a token without an operator, and takes it back at once', {
    timeout: 180_000,
  }, async () => {
    const token = await shop.pod('cart')
    expect((await gateway.exchange('open', token)).error).toBe('access_denied')
    expect((await shop.grant('cart', 'open', 'cart')).status).toBe(201)
    await vi.waitFor(async () => expect((await gateway.exchange('open', token)).status).toBe(200), soon)
    const { body } = await gateway.exchange('open', token)
    expect(decodeJwt(body).sub).toBe(`k8s:${shop.name}:cart`)
    await shop.accepted('cart')
    expect(await shop.condition('cart')).toMatchObject({
      reason: 'Accepted',
      message: 'cart may have tokens of "open"',
      observedGeneration: (await shop.read('cart')).metadata.generation,
    })
    const issued = (await gateway.audit('open')).filter(({ action }) => action === 'issue')
    expect(JSON.parse(issued.at(-1)?.reason ?? '{}')).toMatchObject({ grant: `${shop.name}/cart` })
    expect(await command(stsCommand, 'explain', '--token', tokenFile(token), 'open')).toContain(
      `pass  TokenGrant ${shop.name}/cart`,
    )
    expect(await command(doctorCommand)).toMatch(/grants k8s: \d+ TokenGrants count/)
    // An account that no grant names, and the same account of another namespace, get none.
    expect((await gateway.exchange('open', await shop.pod('cart-2'))).error).toBe('access_denied')
    const other = await team(cluster, `team-${suite}-other`)
    expect((await gateway.exchange('open', await other.pod('cart'))).error).toBe('access_denied')

    expect((await shop.remove('cart')).status).toBe(200)
    await vi.waitFor(async () => expect((await gateway.exchange('open', token)).error).toBe('access_denied'), soon)
  })

  test('a user without rights in a namespace cannot write a grant there', async () => {
    const { body } = await cluster.call<{ message: string }>(
      'POST',
      `/apis/gatehouse.dev/v1/namespaces/default/tokengrants`,
      { metadata: { name: 'x' }, spec: { endpoint: 'open', serviceAccounts: ['cart'] } },
      await cluster.token({ namespace: shop.name, name: 'developer' }),
    )
    expect(body.message).toContain('forbidden')
  })

  test('a grant outside the limits is refused in its status, with an event, and has no effect', {
    timeout: 180_000,
  }, async () => {
    const foreign = await team(cluster, `foreign-${suite}`)
    const token = await foreign.pod('cart')
    await foreign.grant('cart', 'open', 'cart')
    expect(await foreign.reasonOf('cart')).toBe('NamespaceNotAllowed')
    expect((await gateway.exchange('open', token)).error).toBe('access_denied')

    const limited = await team(cluster, `team-${suite}-limits`)
    await limited.grant('admin', 'open', 'admin')
    await limited.grant('many', 'open', 'cart', 'cart-2', 'basket')
    await limited.grant('closed', 'closed', 'cart')
    await limited.grant('unknown', 'opne', 'cart')
    expect(await limited.reasonOf('admin')).toBe('ServiceAccountNotAllowed')
    expect(await limited.reasonOf('many')).toBe('TooManyServiceAccounts')
    expect(await limited.reasonOf('closed')).toBe('GrantsNotHonored')
    expect(await limited.reasonOf('unknown')).toBe('UnknownEndpoint')
    for (const name of ['a', 'b', 'c']) {
      await limited.grant(name, 'open', 'cart')
      await limited.accepted(name)
    }
    await limited.grant('d', 'open', 'basket')
    expect(await limited.reasonOf('d')).toBe('TooManyGrants')
    expect((await gateway.exchange('open', await limited.pod('basket'))).error).toBe('access_denied')
    await limited.remove('a')
    await limited.accepted('d')
    await vi.waitFor(async () => {
      const path = `/apis/events.k8s.io/v1/namespaces/${limited.name}/events`
      const { items } = await cluster.must<EventList>('GET', path)
      const about = (name: string) =>
        items.filter(({ regarding }) => regarding.name === name).map(({ reason }) => reason)
      expect([about('admin'), about('a'), about('d').toSorted()]).toEqual([
        ['GrantRefused'],
        ['GrantAccepted'],
        ['GrantAccepted', 'GrantRefused'],
      ])
    }, soon)
  })

  test('a grant that is deleted while pods exchange allows nothing afterwards', { timeout: 180_000 }, async () => {
    const token = await shop.pod('cart-race')
    for (let round = 0; round < 3; round++) {
      await shop.grant('race', 'open', 'cart-race')
      const statuses: number[] = []
      let isRunning = true
      const load = Promise.all(
        Array.from({ length: 8 }, async () => {
          while (isRunning) statuses.push((await gateway.exchange('open', token)).status)
        }),
      )
      await vi.waitFor(() => expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(20), soon)
      await shop.remove('race')
      // Once one is refused, none is issued again.
      await vi.waitFor(async () => expect((await gateway.exchange('open', token)).status).toBe(403), soon)
      const after = await Promise.all(Array.from({ length: 20 }, () => gateway.exchange('open', token)))
      isRunning = false
      await load
      expect(new Set(after.map(({ status }) => status))).toEqual(new Set([403]))
      expect(new Set(statuses)).toEqual(new Set([200, 403]))
      expect(statuses.at(-1)).toBe(403)
    }
  })

  test('a namespace that is being deleted has no grants', { timeout: 120_000 }, async () => {
    const gone = await team(cluster, `team-${suite}-gone`)
    const token = await gone.pod('cart')
    await gone.grant('cart', 'open', 'cart')
    await vi.waitFor(async () => expect((await gateway.exchange('open', token)).status).toBe(200), soon)
    await cluster.must('DELETE', `/api/v1/namespaces/${gone.name}`)
    await vi.waitFor(async () => expect((await gateway.exchange('open', token)).error).toBe('access_denied'), soon)
    expect(await gone.reasonOf('cart')).toBe('NamespaceEnds')
  })

  test('replicas write each status once, and do not fight even if they decide differently', {
    timeout: 180_000,
  }, async () => {
    const strict = await startStsGateway(cluster, {
      sts: { endpoints: [endpoint('open', { grants: { namespaces: ['no-such-namespace'] } }), closed] },
      grants: true,
    })
    try {
      const calm = await team(cluster, `team-${suite}-calm`)
      await calm.grant('cart', 'open', 'cart')
      await vi.waitFor(async () => expect((await calm.read('cart')).status?.observedGeneration).toBe(1), soon)
      const path = `/apis/gatehouse.dev/v1/namespaces/${calm.name}/tokengrants/cart`
      const versions = new Set<string>()
      const transitions = new Set<string>()
      // Each label makes all of them look again.
      for (let i = 0; i < 15; i++) {
        const { status, body } = await cluster.call<Stored>(
          'PATCH',
          path,
          { metadata: { labels: { round: String(i) } } },
          undefined,
          'application/merge-patch+json',
        )
        expect(status).toBe(200)
        versions.add(body.metadata.resourceVersion)
        // A replica that writes the status of the other one has looked at this one too.
        const beacon = `beacon-${i}`
        await calm.grant(beacon, 'open', 'cart')
        await vi.waitFor(async () => expect((await calm.read(beacon)).status?.observedGeneration).toBe(1), soon)
        await calm.remove(beacon)
        const { metadata, status: stored } = await cluster.must<Stored>('GET', path)
        versions.add(metadata.resourceVersion)
        transitions.add(JSON.stringify(stored?.conditions))
      }
      // At most one decision of each side beside the labels.
      expect(versions.size).toBeLessThanOrEqual(15 + 3)
      expect(transitions.size).toBeLessThanOrEqual(3)
    } finally {
      await strict.stop()
    }
  })

  test('grants count throughout changes of the configuration, until their endpoint disappears', {
    timeout: 180_000,
  }, async () => {
    const moved = await team(cluster, `team-${suite}-moved`)
    const token = await moved.pod('cart')
    await moved.grant('cart', 'open', 'cart')
    await vi.waitFor(async () => expect((await gateway.exchange('open', token)).status).toBe(200), soon)
    const file = join(gateway.config, 'values.yaml')
    const write = (...endpoints: object[]) => writeFileSync(file, JSON.stringify({ sts: { endpoints } }))
    const loads = () => gateway.process().output().split('configuration').length
    for (const round of ['one', 'two']) {
      const before = loads()
      write(endpoint('open'), closed, endpoint(round))
      await vi.waitFor(async () => {
        expect((await gateway.exchange('open', token)).status).toBe(200)
        expect(loads()).toBeGreaterThan(before)
        expect((await gateway.exchange(round, token)).error).toBe('access_denied')
      }, soon)
    }
    expect(readFileSync(file, 'utf8')).toContain('two')
    write(closed)
    await vi.waitFor(async () => expect((await gateway.exchange('open', token)).status).toBe(404), soon)
    await twin.stop()
    write(closed, endpoint('two'))
    expect(await moved.reasonOf('cart')).toBe('UnknownEndpoint')
  })
})

describe.skipIf(inject('kube') === undefined)('grants while the API server is down', () => {
  test('still count for tokens that are accepted by their signature, and end when it is back', {
    timeout: 240_000,
  }, async () => {
    const server = await startKubeApiServer(await kubeBinaries())
    const { client } = server
    let gateway: StsGateway | undefined
    try {
      await defineGrants(client)
      const open = {
        name: 'open',
        audience: 'open',
        path: '/sts/open',
        issuer: { host: 'open.example.com' },
        rateLimit: { burst: 1000, perMinute: 60_000 },
        grants: { namespaces: ['shop'] },
        whenApiServerIsAway: 'offline-ok',
        offlineSeconds: 600,
      }
      const running = await startStsGateway(client, { sts: { endpoints: [open] }, grants: true })
      gateway = running
      const shop = await team(client, 'shop')
      const cart = await podWithAccount(client, { namespace: 'shop', name: 'cart' }, 'cart-1')
      const [known, unseen] = [await cart.tokenFor(incoming), await cart.tokenFor(incoming)]
      await shop.grant('cart', 'open', 'cart')
      await vi.waitFor(async () => expect((await running.exchange('open', known)).status).toBe(200), soon)
      await server.kill()
      await vi.waitFor(
        () => expect(running.process().output()).toContain('the known ones count for a limited time'),
        soon,
      )
      await vi.waitFor(async () => expect((await running.exchange('open', unseen)).status).toBe(200), soon)
      const reason = JSON.parse((await running.audit('open')).at(-1)?.reason ?? '{}') as unknown
      expect(reason).toMatchObject({ grant: 'shop/cart', review: 'offline' })
      await server.restart()
      await vi.waitFor(async () => expect((await shop.remove('cart')).status).toBe(200), soon)
      await vi.waitFor(async () => expect((await running.exchange('open', known)).status).toBe(403), soon)
    } finally {
      await gateway?.stop()
      client.close()
      await server.stop()
    }
  })
})
