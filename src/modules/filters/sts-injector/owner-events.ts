import { hostname } from 'node:os'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import { RateLimit } from '#kernel/rate-limit.ts'
import type { PodOwner } from '#protocols/admission/pod.ts'
import type { ClusterObjects } from '#sdk/target/kubernetes-cluster.ts'

export interface OwnerEventOptions {
  readonly objects: Pick<ClusterObjects, 'create'>
  readonly clock: Clock
  readonly log: Logger
}

const mostOwners = 10_000
/** A controller whose pods are refused makes them again and again. */
const perOwner = { burst: 1, perMinute: 0.1 }
/** Also against callers of the webhook who aren't the API server. */
const overall = { burst: 30, perMinute: 60 }
const mostUnderway = 8
const longestNote = 1000
const longestInstance = 128

/**
 * Tells the owner of a pod that it does not get its tokens, by an event on the object that owns it: the warning of the
 * admission reaches only who made the pod, which is a controller.
 */
export class OwnerEvents {
  readonly #options: OwnerEventOptions
  readonly #rates: RateLimit
  readonly #rate: RateLimit
  #underway = 0

  constructor(options: OwnerEventOptions) {
    this.#options = options
    this.#rates = new RateLimit(mostOwners, options.clock)
    this.#rate = new RateLimit(1, options.clock)
  }

  /** Returns at once; what fails is logged. One event for an owner in ten minutes. */
  report(namespace: string, owner: PodOwner, refused: boolean, note: string): void {
    const { objects, clock, log } = this.#options
    if (this.#underway >= mostUnderway) return
    if (this.#rates.take(JSON.stringify([namespace, owner.uid]), perOwner) !== undefined) return
    if (this.#rate.take('', overall) !== undefined) return
    this.#underway += 1
    const event = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { generateName: 'gatehouse-injector-', namespace },
      eventTime: clock().toISOString().replace('Z', '000Z'),
      reportingController: 'gatehouse.tremolo.io/injector',
      reportingInstance: hostname().slice(0, longestInstance) || 'gatehouse',
      action: 'InjectTokens',
      reason: refused ? 'PodRefused' : 'TokensNotInjected',
      type: 'Warning',
      regarding: { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, namespace, uid: owner.uid },
      note: note.length <= longestNote ? note : `${note.slice(0, longestNote)}...`,
    }
    objects
      .create({ group: 'events.k8s.io', version: 'v1', plural: 'events', namespace }, event)
      .catch((err: unknown) => log.warn('an event could not be created', { namespace, owner: owner.name, err }))
      .finally(() => {
        this.#underway -= 1
      })
  }
}
