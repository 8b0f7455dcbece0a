import { ClusterEvents } from '#features/sts/events/cluster-events.ts'
import type { StsHost } from '#features/sts/host.ts'
import type { PodAdmission } from '#features/sts/service/pod-admission.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import {
  type AdmissionAnswer,
  type AdmissionRequest,
  diffToPatch,
  maxReviewBytes,
  parseReview,
  reviewResponse,
  reviewUid,
} from '#protocols/admission/admission-review.ts'
import { type Injection, inject } from '#protocols/admission/inject.ts'
import type { InjectorSettings } from '#protocols/admission/injector-settings.ts'
import { ownerOf, type Pod, podSchema } from '#protocols/admission/pod.ts'
import type { PodEndpoint } from '#protocols/admission/pod-endpoint.ts'
import { asksAccount, isReadAnnotation, type PodAccount } from '#protocols/admission/pod-request.ts'
import { requireJson } from '#sdk/api/json-body.ts'
import { allowMethods } from '#sdk/api/routes.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { isCluster } from '#sdk/target/kubernetes-cluster.ts'
import { ServiceAccounts } from './service-accounts.ts'

export interface InjectorConfig {
  readonly settings: InjectorSettings
  readonly whenNotInjectable: 'admit' | 'refuse'
  /** Undefined if annotations of service accounts are ignored, and owners get no events. */
  readonly cluster: string | undefined
}

const maxFaults = 16
const maxFault = 400

/** Answers each review with the changes of the pod. */
export function createInjection(config: InjectorConfig, host: StsHost): Filter {
  const injection = new PodInjection(config, host)
  return {
    async handle({ request, pathInfo }) {
      if (pathInfo !== '' && pathInfo !== '/') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
      allowMethods(request.method, 'POST')
      requireJson(request)
      const body = await request.body(maxReviewBytes)
      let review: AdmissionRequest
      try {
        review = parseReview(body)
      } catch (error) {
        // The creator of a pod sees the reason in a review; the API server hides any other answer.
        const uid = reviewUid(body)
        if (uid === undefined || !(error instanceof GatewayError)) throw error
        return jsonAnswer(
          reviewResponse(uid, {
            refusal: { code: 422, message: `gatehouse cannot read the pod: ${error.publicText}` },
          }),
        )
      }
      return jsonAnswer(reviewResponse(review.uid, await injection.answer(review, request.id)))
    },
  }
}

class PodInjection {
  readonly #config: InjectorConfig
  readonly #host: StsHost
  readonly #endpoints: readonly PodEndpoint[]
  readonly #accounts: ServiceAccounts | undefined
  /** The warning of an admission reaches only the creator of the pod, which is a controller. */
  readonly #events: ClusterEvents | undefined

  constructor(config: InjectorConfig, host: StsHost) {
    this.#config = config
    this.#host = host
    this.#endpoints = host.stsPodEndpoints ?? []
    const target = config.cluster === undefined ? undefined : host.targets.get(config.cluster)
    if (target === undefined || !isCluster(target)) return
    const { objects } = target
    const { clock, log } = host
    const isRead = isReadAnnotation(this.#endpoints)
    this.#accounts = new ServiceAccounts({ objects, clock, log, isRead })
    this.#events = new ClusterEvents({ objects, rateLimits: host.rateLimits, clock, log, purpose: 'owners of pods' })
  }

  /** Returns every failure in the answer, where the creator of the pod sees it. */
  async answer(review: AdmissionRequest, requestId: string): Promise<AdmissionAnswer> {
    const { group, kind } = review.kind
    if (group !== '' || kind !== 'Pod') return { warnings: [`gatehouse gives tokens to pods only, not to ${kind}`] }
    if (review.operation !== 'CREATE' || review.subResource !== '') return {}
    const read = podSchema.safeParse(review.object)
    if (!read.success) {
      const where = read.error.issues[0]?.path.join('.') || 'the object'
      return { refusal: { code: 422, message: `gatehouse cannot read the pod: ${where} is invalid` } }
    }
    const pod = read.data
    const account = await this.#account(pod, review.namespace)
    let result: Injection
    try {
      result = inject(pod, this.#endpoints, this.#config.settings, account)
    } catch (err) {
      this.#host.log.error('a pod could not be injected', { namespace: review.namespace, err })
      result = { pod, endpoints: [], faults: ['an internal error, which the log of gatehouse has'], warnings: [] }
    }
    return this.#decide(review, pod, account, result, requestId)
  }

  /** The pod's account, read only if its annotations could count. */
  async #account({ metadata, spec }: Pod, reviewed: string): Promise<PodAccount> {
    const namespace = reviewed || (metadata.namespace ?? '')
    const name = spec.serviceAccountName || 'default'
    const asks = this.#accounts !== undefined && asksAccount({ metadata, spec }, this.#endpoints)
    const known = asks ? await this.#accounts.annotationsOf(namespace, name) : { annotations: {} }
    return { namespace, name, cluster: this.#config.cluster, ...known }
  }

  async #decide(
    review: AdmissionRequest,
    pod: Pod,
    account: PodAccount,
    { warnings, endpoints, ...result }: Injection,
    requestId: string,
  ): Promise<AdmissionAnswer> {
    const faults = shortened(result.faults)
    const refused = faults.length > 0 && this.#config.whenNotInjectable === 'refuse'
    const patch = refused ? [] : diffToPatch(review.object, result.pod)
    if ((faults.length > 0 || patch.length > 0) && !review.dryRun) {
      const owner = ownerOf(pod)
      const admission: PodAdmission = {
        requestId,
        namespace: account.namespace,
        serviceAccount: account.name,
        pod: pod.metadata.name ?? pod.metadata.generateName ?? '',
        owner: owner === undefined ? undefined : `${owner.kind}/${owner.name}`,
        decision: refused ? 'refused' : endpoints.length > 0 ? 'injected' : 'admitted',
        endpoints: refused ? [] : endpoints,
        reasons: faults,
      }
      if (faults.length > 0) this.#host.log.warn('a pod does not get the tokens that it asks for', { ...admission })
      else this.#host.log.info('a pod gets tokens', { ...admission })
      if (faults.length > 0 && owner !== undefined) {
        this.#events?.report({
          prefix: 'gatehouse-injector-',
          controller: 'gatehouse.tremolo.io/injector',
          action: 'InjectTokens',
          reason: refused ? 'PodRefused' : 'TokensNotInjected',
          type: 'Warning',
          namespace: account.namespace,
          regarding: { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, uid: owner.uid },
          note: `${admission.pod}: ${faults.join('; ')}`,
        })
      }
      await this.#host.recordAdmission?.(admission)
    }
    if (refused) return { refusal: { code: 422, message: `gatehouse: ${faults.join('; ')}` } }
    return { patch, warnings: [...faults, ...warnings].map((text) => `gatehouse: ${text}`) }
  }
}

/** Limits length and number: the pod chooses the names in faults, and there may be as many as containers. */
function shortened(faults: readonly string[]): readonly string[] {
  const shown = faults
    .slice(0, maxFaults)
    .map((text) => (text.length <= maxFault ? text : `${text.slice(0, maxFault)}...`))
  return faults.length <= maxFaults ? shown : [...shown, `and ${faults.length - maxFaults} more`]
}

function jsonAnswer(value: JsonValue): GatewayResponse {
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify(value),
  }
}
