import { Dn } from '#identity/dn.ts'
import type { Subject } from '#identity/subject.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import type { ClusterObject } from '#protocols/kubernetes/cluster.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { type GatewayRequest, header } from '#sdk/http/http.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { type ClusterObjects, objectsOf } from '#sdk/target/kubernetes-cluster.ts'

/** How long a list is used before it is read again, and how long while it cannot be read. */
const freshMillis = 5_000
const staleMillis = 60_000
const maxObjects = 10_000

/** Ends sessions of users whom an EndSession object names, if they logged in before it was created. */
export default defineFilter({
  className: 'filters.EndSessions',
  aliases: ['com.tremolosecurity.proxy.filters.SetupEndSessionWatch'],
  ...withParameters({
    k8sTarget: text({
      about: 'The Kubernetes target whose cluster has the objects.',
      required: true,
      reference: 'target',
    }),
    namespace: text({ about: 'Their namespace.', required: true }),
  }),
  answers: false,
  create: ({ k8sTarget, namespace }, { targets, clock, log, sessions }) => {
    const ends = new SessionEnds(objectsOf(targets, k8sTarget), namespace, clock, log)
    return {
      async handle({ request, subject, session }, next) {
        if (session === undefined || !(await ends.covers(subject, session.authenticated))) return next()
        const ended = await sessions.end(subject.identity, session.id)
        log.info('an EndSession object ended a session', { requestId: request.id, dn: subject.dn.toString() })
        // With the origin, since a path may begin with two slashes, which alone would name another host.
        if (ended && isPage(request)) return seeOther(`${request.origin}${request.path}${querySuffix(request)}`)
        throw new GatewayError('AUTH_REQUIRED', 'an EndSession object ended the session')
      },
    }
  },
})

/**
 * The latest EndSession object of each user. Names with the same key are one user here, even if they differ in a claim's
 * letter case: to end too many sessions is the safe mistake.
 */
class SessionEnds {
  readonly #objects: ClusterObjects
  readonly #namespace: string
  readonly #clock: Clock
  readonly #log: Logger
  #known: { readonly ends: ReadonlyMap<string, number>; readonly at: number } | undefined
  #loading: Promise<void> | undefined

  constructor(objects: ClusterObjects, namespace: string, clock: Clock, log: Logger) {
    this.#objects = objects
    this.#namespace = namespace
    this.#clock = clock
    this.#log = log
  }

  /** Throws TARGET_UNREACHABLE if the objects have not been readable for a minute. */
  async covers({ dn, otherNames = [] }: Subject, authenticated: Date): Promise<boolean> {
    const { ends } = await this.#current()
    // The API server cuts the time of creation to seconds.
    return [dn, ...otherNames].some((name) => (ends.get(name.key) ?? -Infinity) + 999 >= authenticated.getTime())
  }

  async #current(): Promise<{ readonly ends: ReadonlyMap<string, number> }> {
    const age = () => this.#clock().getTime() - (this.#known?.at ?? Number.NEGATIVE_INFINITY)
    if (this.#known !== undefined && age() < freshMillis) return this.#known
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined
    })
    try {
      await this.#loading
    } catch (cause) {
      this.#log.warn('EndSession objects cannot be read', { namespace: this.#namespace, err: cause })
      if (age() >= staleMillis) {
        throw new GatewayError('TARGET_UNREACHABLE', 'EndSession objects cannot be read', { cause, retryAfter: 5 })
      }
    }
    if (this.#known === undefined) throw new Error('EndSession objects were not read')
    return this.#known
  }

  async #load(): Promise<void> {
    const at = this.#clock().getTime()
    const resource = {
      group: 'openunison.tremolo.io',
      version: 'v1',
      plural: 'endsessions',
      namespace: this.#namespace,
    }
    const ends = new Map<string, number>()
    for (const object of await this.#objects.list(resource, maxObjects)) {
      const end = readEnd(object)
      if (end === undefined) this.#log.warn('an EndSession object is not valid', { name: object.metadata.name })
      else ends.set(end.key, Math.max(end.created, ends.get(end.key) ?? end.created))
    }
    this.#known = { ends, at }
  }
}

function readEnd({ metadata, content }: ClusterObject): { readonly key: string; readonly created: number } | undefined {
  const spec = content['spec']
  const dn = isJsonObject(spec) ? spec['dn'] : undefined
  const created = Date.parse(metadata.creationTimestamp ?? '')
  if (typeof dn !== 'string' || Number.isNaN(created)) return undefined
  try {
    return { key: Dn.parse(dn).key, created }
  } catch {
    return undefined
  }
}

const isPage = (request: GatewayRequest): boolean =>
  request.method === 'GET' && (header(request, 'accept') ?? '').includes('text/html')

const querySuffix = ({ query }: GatewayRequest): string => (query.size === 0 ? '' : `?${query}`)
