import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { commandsOf, type GuideCluster, startGuideCluster } from '#testing/sts/consumer-guide.ts'
import { type OpenBao, startOpenBao } from '#testing/sts/openbao.ts'

/** The guide as written: its commands as calls of OpenBao's API, its workload with only the injected settings. */
describe.skipIf(inject('kube') === undefined || inject('openbao') === undefined)(
  'the guide of OpenBao',
  { timeout: 240_000 },
  () => {
    let cluster: GuideCluster
    let bao: OpenBao

    beforeAll(async () => {
      cluster = await startGuideCluster()
      bao = await startOpenBao()
      await cluster.start({ openbao: { localIssuer: true, settings: { address: bao.address } } })
    }, 240_000)

    afterAll(async () => {
      await bao?.stop()
      await cluster?.stop()
    }, 60_000)

    test('the workload logs in with its role and reads its secret, and nothing else', async () => {
      const { node, variables } = await cluster.workload('openbao')
      expect(Object.keys(variables).sort()).toEqual(['VAULT_ADDR', 'VAULT_AUTH_PATH', 'VAULT_JWT_FILE', 'VAULT_ROLE'])
      await bao.call('POST', 'sys/mounts/secret', { type: 'kv', options: { version: '2' } })
      await bao.call('POST', 'secret/data/cart', { data: { color: 'green' } })
      await bao.call('POST', 'secret/data/other', { data: { color: 'red' } })
      for (const { path, body, method } of callsOf(commandsOf('openbao'))) {
        const local =
          path !== 'auth/jwt/config'
            ? {}
            : { oidc_discovery_ca_pem: bao.ca, oidc_discovery_url: `${cluster.site.url}/bao` }
        await bao.call(method, path, { ...body, ...local })
      }
      const answer = await node(`
      import { readFileSync } from 'node:fs'
      const { VAULT_ADDR, VAULT_AUTH_PATH, VAULT_JWT_FILE, VAULT_ROLE } = process.env
      const login = await fetch(VAULT_ADDR + '/v1/auth/' + VAULT_AUTH_PATH + '/login', {
        method: 'POST',
        body: JSON.stringify({ role: VAULT_ROLE, jwt: readFileSync(VAULT_JWT_FILE, 'utf8') }),
      })
      const { auth, errors } = await login.json()
      const read = async (name) => {
        const headers = { 'x-vault-token': auth.client_token }
        const response = await fetch(VAULT_ADDR + '/v1/secret/data/' + name, { headers })
        return [response.status, (await response.json()).data?.data]
      }
      console.log(JSON.stringify(errors ?? { policies: auth.policies, cart: await read('cart'), other: await read('other') }))`)
      expect(answer).toEqual({ policies: ['cart', 'default'], cart: [200, { color: 'green' }], other: [403, null] })
    })
  },
)

interface Call {
  readonly method: 'POST' | 'PUT'
  readonly path: string
  readonly body: Readonly<Record<string, string>>
}

/** The calls that the commands of `bao` send. */
function callsOf(commands: string): Call[] {
  const policies = Array.from(
    commands.matchAll(/^bao policy write (\S+) - <<'END'\n([\s\S]*?)^END$/gm),
    ([, name = '', policy = '']): Call => ({ method: 'PUT', path: `sys/policies/acl/${name}`, body: { policy } }),
  )
  const others = Array.from(
    commands.matchAll(/^bao (auth enable|write) (\S+)(.*)$/gm),
    ([, verb, path = '', rest = '']): Call => {
      if (verb === 'auth enable') return { method: 'POST', path: `sys/auth/${path}`, body: { type: path } }
      const pairs = rest
        .trim()
        .split(' ')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const)
      return { method: 'POST', path, body: Object.fromEntries(pairs) }
    },
  )
  return [...others, ...policies]
}
