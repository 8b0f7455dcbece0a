import type { StsEndpointConfig } from '#config/configuration/configuration.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { judgeGrants } from './grant-verdict.ts'
import { grantName, readGrant, readNamespace, type TokenGrant, tokenGrants } from './token-grant.ts'
import type { GrantSource } from './token-grants.ts'

/** How many grants that don't count are named. */
const mostRefused = 10
const unlabeled = { labels: {}, isEnding: false }

/**
 * Grants from documents instead of a cluster, for policy tests: objects of the kind TokenGrant, judged as those of a
 * cluster, and objects of the kind Namespace, for their labels. Others are ignored.
 */
export function givenGrants(documents: readonly unknown[], endpoints: readonly StsEndpointConfig[]): GrantSource {
  const objects = documents.filter(isJsonObject)
  const byName = new Map(endpoints.map(({ endpoint }) => [endpoint.name, endpoint]))
  const grants = objects.filter(isGrant).map((content) => readGrant({ metadata: metadataOf(content), content }))
  const byNamespace = Map.groupBy(grants, ({ namespace }) => namespace)
  const labels = new Map(
    objects
      .filter(({ kind, apiVersion }) => kind === 'Namespace' && apiVersion === 'v1')
      .map((content) => [metadataOf(content).name, readNamespace({ content })]),
  )
  const allows = (grant: TokenGrant, endpoint: string, account: string): boolean =>
    grant.endpoint === endpoint && grant.serviceAccounts.includes(account)
  return {
    find: (endpoint, { source, namespace = '', account = '' }) => {
      const place = labels.get(namespace) ?? unlabeled
      const judged = judgeGrants(byNamespace.get(namespace) ?? [], place, byName, source)
      for (const [grant, { status }] of judged) {
        if (status === 'True' && allows(grant, endpoint, account)) return { kind: 'granted', grant: grantName(grant) }
      }
      const refused = Array.from(judged).flatMap(([grant, { status, message }]) => {
        const isForAnother = grant.endpoint !== endpoint && byName.has(grant.endpoint)
        return status === 'True' || isForAnother ? [] : [`${grantName(grant)} does not count: ${message}`]
      })
      return { kind: 'none', refused: refused.slice(0, mostRefused) }
    },
  }
}

const isGrant = ({ kind, apiVersion }: JsonObject): boolean =>
  kind === 'TokenGrant' && apiVersion === `${tokenGrants.group}/${tokenGrants.version}`

function metadataOf({ metadata }: JsonObject): {
  name: string
  namespace: string
  uid: string
  resourceVersion: string
} {
  const { name, namespace } = isJsonObject(metadata) ? metadata : ({} as JsonObject)
  return { name: String(name ?? ''), namespace: String(namespace ?? 'default'), uid: '', resourceVersion: '' }
}
