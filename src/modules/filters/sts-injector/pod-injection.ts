import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { InjectorConfig } from '#modules/filters/sts-injector/sts-injector.ts'
import {
  type AdmissionAnswer,
  type AdmissionRequest,
  maxReviewBytes,
  parseReview,
  reviewResponse,
} from '#protocols/admission/admission-review.ts'
import { inject } from '#protocols/admission/inject.ts'
import { diffToPatch } from '#protocols/admission/json-patch.ts'
import { type Pod, podSchema } from '#protocols/admission/pod.ts'
import type { Filter } from '#sdk/filter.ts'
import type { ModuleHost } from '#sdk/host.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http.ts'

const maxFaults = 16
const maxFault = 400

/** Answers each review with what the pod is to get. */
export function createInjection(config: InjectorConfig, host: ModuleHost): Filter {
  return {
    async handle({ request, pathInfo }) {
      if (pathInfo !== '' && pathInfo !== '/') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
      if (request.method !== 'POST') {
        throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'POST' } })
      }
      const review = parseReview(await bodyOf(request))
      return jsonAnswer(reviewResponse(review.uid, answerTo(review, config, host)))
    },
  }
}

async function bodyOf(request: GatewayRequest): Promise<Buffer> {
  const type = header(request, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content type "${type ?? ''}"`, {
      publicText: 'The body must be application/json.',
    })
  }
  return request.body(maxReviewBytes)
}

/** Whatever goes wrong with one pod is told in the answer, where whoever made the pod sees it. */
function answerTo(review: AdmissionRequest, config: InjectorConfig, host: ModuleHost): AdmissionAnswer {
  const { group, kind } = review.kind
  if (group !== '' || kind !== 'Pod') return { warnings: [`gatehouse gives tokens to pods only, not to ${kind}`] }
  if (review.operation !== 'CREATE' || review.subResource !== '') return {}
  const read = podSchema.safeParse(review.object)
  if (!read.success) {
    const where = read.error.issues[0]?.path.join('.') ?? ''
    return { refusal: { code: 422, message: `gatehouse cannot read the pod: ${where} is not as it should be` } }
  }
  try {
    return injected(read.data, review, config, host)
  } catch (thrown) {
    const { code, message } = asGatewayError(thrown)
    host.log.error('a pod could not be injected', { code, detail: message, namespace: review.namespace })
    return { refusal: { code: 422, message: 'gatehouse could not give the pod its tokens; its log says why' } }
  }
}

function injected(
  pod: Pod,
  review: AdmissionRequest,
  { settings, refuseFaultyPods }: InjectorConfig,
  host: ModuleHost,
): AdmissionAnswer {
  const result = inject(pod, host.stsPodEndpoints ?? [], settings)
  const { warnings, endpoints } = result
  const faults = shortened(result.faults)
  if (faults.length > 0 || endpoints.length > 0) {
    const about = { namespace: review.namespace, pod: pod.metadata.name ?? pod.metadata.generateName, endpoints }
    if (faults.length > 0) host.log.warn('a pod does not get what it asks for', { ...about, faults })
    else host.log.info('a pod gets tokens', about)
  }
  if (refuseFaultyPods && faults.length > 0) {
    return { refusal: { code: 422, message: `gatehouse: ${faults.join('; ')}` } }
  }
  return {
    patch: diffToPatch(review.object, result.pod),
    warnings: [...faults, ...warnings].map((text) => `gatehouse: ${text}`),
  }
}

/** Names in them are the pod's own, and there may be as many as containers. */
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
