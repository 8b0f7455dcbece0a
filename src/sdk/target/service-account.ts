import { Attributes } from '#identity/attributes.ts'
import type { TokenReview } from '#protocols/kubernetes/cluster.ts'

type ServiceAccount =
  | { readonly kind: 'service account'; readonly attributes: Attributes }
  /** `reason` is for the log. `otherAudience`: the cluster confirms the token, but not for a requested audience. */
  | { readonly kind: 'refused'; readonly reason: string; readonly otherAudience?: true }

const accountName = /^system:serviceaccount:([^:]+):([^:]+)$/
const accountGroup = 'system:serviceaccounts'
const extraPrefix = 'authentication.kubernetes.io/'
const extraNames = ['credential-id', 'node-name', 'node-uid', 'pod-name', 'pod-uid']

/**
 * The service account of a review, as attributes. Users, nodes and other identities of a cluster are refused: a
 * name that only looks like a service account's is not one without its group. If audiences were requested, one of
 * them must be confirmed, since a cluster may ignore the request.
 */
export function serviceAccountOf(review: TokenReview, audiences: readonly string[]): ServiceAccount {
  if (review.error !== undefined) return refused(`the token was not accepted: ${review.error}`)
  if (!review.authenticated) return refused('the token was not accepted')
  if (audiences.length > 0 && !review.audiences.some((audience) => audiences.includes(audience))) {
    return { ...refused('the token is not confirmed for any of the audiences'), otherAudience: true }
  }
  const [, namespace, account] = accountName.exec(review.username) ?? []
  if (namespace === undefined || account === undefined) return refused('the token is not of a service account')
  if (!review.groups.includes(accountGroup)) return refused(`the caller is not in the group ${accountGroup}`)
  const attributes = Attributes.from({
    sub: [review.username],
    username: [review.username],
    uid: review.uid === '' ? [] : [review.uid],
    groups: review.groups,
    namespace: [namespace],
    saname: [account],
  })
  for (const name of extraNames) attributes.set(name, review.extra.get(extraPrefix + name) ?? [])
  return { kind: 'service account', attributes }
}

const refused = (reason: string) => ({ kind: 'refused', reason }) as const

/** The attributes of a service account, with the ones that rules of token endpoints use. */
export function workloadAttributes(cluster: string, namespace: string, account: string, more: Attributes): Attributes {
  const attributes = more.clone()
  attributes.setClaim('token_sub', [`${cluster}:${namespace}:${account}`])
  attributes.setClaim('cluster', [cluster])
  attributes.setClaim('namespace', [namespace])
  attributes.setClaim('saname', [account])
  return attributes
}
