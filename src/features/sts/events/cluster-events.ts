import { hostname } from 'node:os'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { ClusterObjects } from '#sdk/target/kubernetes-cluster.ts'

export interface ClusterEventParts {
  readonly objects: Pick<ClusterObjects, 'create'>
  readonly rateLimits: RateLimits
  readonly clock: Clock
  readonly log: Logger
  /** What they are about; each purpose has limits of its own. */
  readonly purpose: string
}

interface ClusterEvent {
  /** The beginning of its name. */
  readonly prefix: string
  readonly controller: string
  readonly action: string
  readonly reason: string
  readonly type: 'Normal' | 'Warning'
  readonly namespace: string
  readonly regarding: {
    readonly apiVersion: string
    readonly kind: string
    readonly name: string
    readonly uid: string
  }
  readonly note: string
}

/** A controller whose pods are rejected creates them again and again. */
const perObject = { burst: 1, perMinute: 0.1 }
const overall = { burst: 30, perMinute: 60 }
const mostUnderway = 8
const longestNote = 1000
const longestInstance = 128

/** Creates events in a cluster: one of a reason in ten minutes for an object, and a limited number for all. */
export class ClusterEvents {
  readonly #parts: ClusterEventParts
  #underway = 0

  constructor(parts: ClusterEventParts) {
    this.#parts = parts
  }

  /** Returns at once and logs failures. */
  report(event: ClusterEvent): void {
    if (this.#underway >= mostUnderway) return
    this.#underway += 1
    const { namespace, regarding } = event
    this.#create(event)
      .catch((err: unknown) =>
        this.#parts.log.warn('an event could not be created', { namespace, object: regarding.name, err }),
      )
      .finally(() => {
        this.#underway -= 1
      })
  }

  async #create({ prefix, controller, namespace, regarding, note, ...event }: ClusterEvent): Promise<void> {
    const { objects, rateLimits, clock, purpose } = this.#parts
    const key = JSON.stringify([namespace, regarding.uid, event.reason])
    if ((await rateLimits.take(`events of one of the ${purpose}`, key, perObject)) !== undefined) return
    if ((await rateLimits.take(`events of ${purpose}`, '', overall)) !== undefined) return
    const object = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { generateName: prefix, namespace },
      eventTime: clock().toISOString().replace('Z', '000Z'),
      reportingController: controller,
      reportingInstance: hostname().slice(0, longestInstance) || 'gatehouse',
      ...event,
      regarding: { ...regarding, namespace },
      note: note.length <= longestNote ? note : `${note.slice(0, longestNote)}...`,
    }
    await objects.create({ group: 'events.k8s.io', version: 'v1', plural: 'events', namespace }, object)
  }
}
