import { JsonService, readBearerToken } from '#adapters/targets/shared/json-service.ts'
import { parseTrustedUrl } from '#kernel/address.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import { openHttpPool } from '#protocols/http/http-client.ts'
import { type Authority, authorityParameters, loadAuthority, readAuthority } from '#sdk/module/authority.ts'
import { parsed, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import type { ArgoCd } from '#sdk/target/argocd.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'

const parameters = {
  url: parsed('https address', parseTrustedUrl, {
    about: 'The address of Argo CD: `https:`, or `http:` on this machine only.',
    required: true,
  }),
  token: parsed('token', readBearerToken, {
    about: 'A token of an account of Argo CD that may create repositories.',
    required: true,
    secret: true,
  }),
  ...authorityParameters,
  timeoutMillis: wholeNumber({
    about: 'How long a call may take. Argo CD connects to a repository before it answers.',
    fallback: 30_000,
    min: 100,
    max: 120_000,
  }),
} satisfies ParameterTable

interface Config {
  readonly url: URL
  readonly token: string
  readonly authority: Authority
  readonly timeoutMillis: number
}

/** An Argo CD, by its API. It has no users of its own. */
export default defineTarget<Config>({
  className: 'targets.ArgoCD',
  aliases: ['com.tremolosecurity.argocd.targets.ArgoCDTarget'],
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    const { url = new URL('https://argocd.invalid'), token = '', timeoutMillis } = given
    return { url, token, authority: readAuthority(given, params, issues, context), timeoutMillis }
  },
  passwords: () => false,
  create: async ({ url: base, token, authority, timeoutMillis }, { name, clock }) => {
    const pool = openHttpPool(await loadAuthority(authority))
    const service = new JsonService({ pool, target: name, timeoutMillis, clock })
    const repositories = (query: Readonly<Record<string, string>>): URL => {
      const url = new URL(base)
      url.pathname = `${url.pathname.replace(/\/+$/, '')}/api/v1/repositories`
      url.search = new URLSearchParams(query).toString()
      return url
    }
    const noUsers = async (): Promise<never> => {
      throw new GatewayError('NOT_SUPPORTED', `target "${name}" is an Argo CD: users are not provisioned to it`)
    }
    const target: ArgoCd = {
      async hasRepository(url, { signal }) {
        const { body } = await service.call({ method: 'GET', url: repositories({ repo: url }), token, signal })
        return readItems(body, name).some((item) => isJsonObject(item) && item['repo'] === url)
      },
      async putRepository({ url: repo, type, name, sshPrivateKey }, { signal }) {
        const body = { type, name, repo, sshPrivateKey }
        await service.call({ method: 'POST', url: repositories({ upsert: 'true' }), token, body, signal })
      },
      findUser: noUsers,
      createUser: noUsers,
      syncUser: noUsers,
      deleteUser: noUsers,
      close: () => pool.close(),
    }
    return target
  },
})

/** `items` is null in an empty list. */
function readItems(body: string, target: string): readonly unknown[] {
  let list: unknown
  try {
    list = JSON.parse(body)
  } catch {
    list = undefined
  }
  if (!isJsonObject(list)) {
    throw new GatewayError(
      'TARGET_FAILED',
      `target "${target}" answered with something other than a list of repositories`,
    )
  }
  const { items } = list
  return Array.isArray(items) ? items : []
}
