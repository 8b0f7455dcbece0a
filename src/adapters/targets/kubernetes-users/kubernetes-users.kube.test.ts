import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import kubernetes from '#adapters/targets/kubernetes/kubernetes.ts'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasLookups, type LookupTarget } from '#sdk/target/target.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { callMillis, trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { type TrialOptions, unstorable } from '#testing/hostile/hostile-entry.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'
import { defineUsers, onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import kubernetesUsers from './kubernetes-users.ts'

const names = {
  attributes: ['mail', 'first_name', 'phone'],
  groups: ['group1', 'group2', 'group3'],
} as const

/** JSON stores NUL as well. */
const hostile: TrialOptions = {
  attributes: ['mail', 'first_name'],
  mayRefuse: (place, value) => unstorable(place, value.replaceAll('\0', '')),
}

onKubernetes('users stored as User objects', (cluster) => {
  beforeAll(() => defineUsers(cluster))

  const { url, ca, adminToken, kubeconfig } = cluster.connection
  const byToken: ParamValues = { url, token: adminToken, certificate: ca }

  async function open(connection: ParamValues = byToken, inNamespace?: string) {
    const nameSpace = inNamespace ?? (await cluster.namespace())
    const k8s = await kubernetes
      .prepare(fakeParams(connection), noIssues(), fakeParseContext())
      .create(fakeModuleHost())
    const issues = noIssues()
    const prepared = kubernetesUsers.prepare(fakeParams({ k8sTarget: 'k8s', nameSpace }), issues, fakeParseContext())
    expect(issues.ok).toBe(true)
    const target = await prepared.create(fakeModuleHost({ targets: { k8s } }))
    return { target, nameSpace, close: async () => k8s.close?.() }
  }

  /** With its own empty namespace, until `use` ends. */
  async function withTarget(
    use: (fixture: ReturnType<typeof targetFixture> & { target: LookupTarget }, nameSpace: string) => Promise<void>,
    connection?: ParamValues,
  ): Promise<void> {
    const { target, nameSpace, close } = await open(connection)
    try {
      if (!hasLookups(target)) throw new Error('the target has no look-ups')
      await use({ ...targetFixture(target, names), target }, nameSpace)
    } finally {
      await close()
    }
  }

  const users = (nameSpace: string): string => `/apis/openunison.tremolo.io/v1/namespaces/${nameSpace}/users`

  targetConformance('User objects', open, { test: (name, run) => test(name, run), ...names })

  test("an object has OpenUnison's fields and name", async () => {
    await withTarget(async ({ target, request }, nameSpace) => {
      const attributes = ['sub', 'uid', 'first_name', 'last_name', 'email', 'phone']
      const user = userOf(
        'Ada@x.test',
        { sub: ['Ada@x.test'], uid: ['any'], first_name: ['Ada'], last_name: ['L'], email: ['a@x.test'], phone: ['1'] },
        ['admins'],
      )
      await target.createUser(user, attributes, request)
      const { spec } = await cluster.must<{ spec: object }>('GET', `${users(nameSpace)}/adax-64-xx.test`)
      expect(spec).toEqual({
        sub: 'Ada@x.test',
        uid: 'adax-64-xx.test',
        first_name: 'Ada',
        last_name: 'L',
        email: 'a@x.test',
        groups: ['admins'],
        attributes: { phone: ['1'] },
      })
      expect(await target.lookupUserByLogin('ADA@x.test')).toMatchObject({ userID: 'Ada@x.test' })
    })
  })

  test('an object that OpenUnison created is found and changed, and foreign fields stay', async () => {
    await withTarget(async ({ target, request }, nameSpace) => {
      await cluster.must('POST', users(nameSpace), {
        apiVersion: 'openunison.tremolo.io/v1',
        kind: 'User',
        metadata: { name: 'ada', labels: { team: 'x' }, annotations: { note: 'y' } },
        spec: { sub: 'ada', uid: 'ada', first_name: 'Ada', last_name: 'L', email: 'a@x.test', groups: ['admins'] },
      })
      expect(await target.findUser('ada', [], request)).toMatchObject({ userID: 'ada', groups: ['admins'] })
      await target.syncUser(
        userOf('ada', { email: ['b@x.test'] }),
        syncOptions(['email'], { keepGroups: true }),
        request,
      )
      expect(await cluster.must('GET', `${users(nameSpace)}/ada`)).toMatchObject({
        metadata: { labels: { team: 'x' }, annotations: { note: 'y' } },
        spec: { first_name: 'Ada', email: 'b@x.test', groups: ['admins'] },
      })
    })
  })

  test('an object that names another login is not the user of its name, and stays', async () => {
    await withTarget(async ({ target, attributes, request, changes }, nameSpace) => {
      const metadata = { name: 'ada' }
      const object = { apiVersion: 'openunison.tremolo.io/v1', kind: 'User', metadata, spec: { sub: 'bob' } }
      await cluster.must('POST', users(nameSpace), object)
      expect(await target.lookupUserByLogin('ada')).toBeUndefined()
      await expect(target.createUser(userOf('ada'), attributes, request)).rejects.toMatchObject({ code: 'CONFLICT' })
      await expect(target.syncUser(userOf('ada'), syncOptions([]), request)).rejects.toMatchObject({
        code: 'NOT_FOUND',
      })
      await target.deleteUser(userOf('ada'), request)
      expect(await cluster.must('GET', `${users(nameSpace)}/ada`)).toMatchObject({ spec: { sub: 'bob' } })
      expect(changes).toEqual([])
    })
  })

  test('after a concurrent write the change is decided again, and both take effect', async () => {
    await withTarget(async (fixture, nameSpace) => {
      const { target, attributes, request } = fixture
      const second = await open(byToken, nameSpace)
      await target.createUser(userOf('ada'), attributes, request)
      const writers = Array.from({ length: 8 }, (_, i) =>
        (i % 2 === 0 ? target : second.target).syncUser(
          userOf('ada', {}, [`group${i}`]),
          syncOptions([], { addOnly: true }),
          request,
        ),
      )
      await Promise.all(writers)
      expect((await fixture.stored('ada'))?.groups).toHaveLength(8)
      await second.close()
    })
  })

  test('a value that an object cannot store is rejected by name, and nothing is written', async () => {
    await withTarget(async ({ target, request }) => {
      const refused: [string, Record<string, string[]>, string[], RegExp][] = [
        ['ada', { first_name: ['a', 'b'] }, [], /"first_name".* one value/],
        ['ada', { mail: ['\ud800'] }, [], /"mail" holds half/],
        ['ada', { mail: ['x'.repeat(64 * 1024 + 1)] }, [], /"mail" is over/],
        ['ada', { sub: ['bob'] }, [], /"sub" of a User object is the login/],
        ['\udc00', {}, [], /the login holds half/],
        ['ada', { mail: Array(20).fill('x'.repeat(64 * 1024)) }, [], /more than 1048576 bytes/],
        ['ada', {}, ['\ud800'], /a group holds half/],
      ]
      for (const [login, attributes, groups, message] of refused) {
        const names = Object.keys(attributes)
        await expect(target.createUser(userOf(login, attributes, groups), names, request)).rejects.toMatchObject({
          code: 'BAD_REQUEST',
          message: expect.stringMatching(message),
        })
      }
      expect(await target.searchUsers({ offset: 0, limit: 10 })).toMatchObject({ total: 0 })
    })
  })

  test('spaces, NUL, emoji and 64 KiB come back unchanged', async () => {
    await withTarget(async (fixture) => {
      const { target, attributes, request } = fixture
      const values = [' a ', '\0', '🎉', '*()\\,+"<>;=#', '', '\u2028']
      for (const [i, value] of values.entries()) {
        await target.createUser(userOf(`user${i}`, { mail: [value] }, [value]), attributes, request)
        expect(await fixture.stored(`user${i}`)).toMatchObject({ values: [[value], [], []], groups: [value] })
      }
      const long = 'x'.repeat(64 * 1024)
      await target.createUser(userOf('long', { mail: [long], first_name: [long] }), attributes, request)
      expect((await fixture.stored('long'))?.values).toEqual([[long], [long], []])
    })
  })

  test('each hostile value passes through every lookup and write unchanged, and touches no other user', {
    timeout: trialMillis,
  }, async () => {
    await withTarget(
      ({ target }) => hostileTrial('Kubernetes users on an API server', target, { ...hostile, batch: 20 }),
      { ...byToken, timeoutMillis: String(callMillis) },
    )
  })

  test('the cluster is reached by kubeconfig, and by a token file that is read again', async () => {
    await withTarget(
      async ({ target, attributes, request }) => {
        await target.createUser(userOf('ada'), attributes, request)
      },
      { kubeconfig },
    )
    const tokenFile = join(temporaryFolder(), 'token')
    writeFileSync(tokenFile, 'not a token')
    await withTarget(
      async ({ target, attributes, request }) => {
        await expect(target.createUser(userOf('ada'), attributes, request)).rejects.toMatchObject({
          code: 'TARGET_FAILED',
          message: expect.stringMatching(/^target "test": .*401/),
        })
        writeFileSync(tokenFile, `${adminToken}\n`)
        await target.createUser(userOf('ada'), attributes, request)
      },
      { url, tokenFile, certificate: ca },
    )
  })

  test('without the right to write: rejected, and the target names the account', async () => {
    const namespace = await cluster.namespace()
    await cluster.serviceAccount({ namespace, name: 'app' })
    const token = await cluster.token({ namespace, name: 'app' })
    await withTarget(
      async ({ target, attributes, request, changes }) => {
        await expect(target.createUser(userOf('ada'), attributes, request)).rejects.toMatchObject({
          code: 'TARGET_FAILED',
          message: expect.stringMatching(/target "test": .*403 Forbidden/),
        })
        expect(changes).toEqual([])
      },
      { url, token, certificate: ca },
    )
  })

  test('a missing namespace, and a missing server', async () => {
    const nowhere = await open(byToken, 'no-such-namespace')
    const { request, attributes } = targetFixture(nowhere.target, names)
    await expect(nowhere.target.createUser(userOf('ada'), attributes, request)).rejects.toMatchObject({
      code: 'TARGET_FAILED',
    })
    await nowhere.close()
    const away = await open({ ...byToken, url: 'https://127.0.0.1:1' }, 'default')
    await expect(away.target.findUser('ada', [], request)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    await away.close()
  })
})
