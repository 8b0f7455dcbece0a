import { statusToWrite } from '#config/watch/object-status.ts'
import { QuietCall } from '#config/watch/quiet-call.ts'
import { type ClusterEventParts, ClusterEvents } from '#features/sts/events/cluster-events.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject } from '#kernel/json.ts'
import { ObjectMissing } from '#protocols/kubernetes/api-failure.ts'
import type { ClusterWatches } from '#sdk/target/kubernetes-cluster.ts'
import type { JudgedGrant } from './cluster-grants.ts'
import { grantName, tokenGrants } from './token-grant.ts'

interface GrantStatusParts extends Omit<ClusterEventParts, 'purpose'> {
  readonly cluster: string
  readonly watches: Pick<ClusterWatches, 'replaceStatus'>
  judged(): readonly JudgedGrant[]
}

interface Decision {
  /** The generation with its verdict. */
  readonly text: string
  /** When this process first decided so. */
  readonly since: number
}

interface Failure {
  readonly grant: string
  readonly err: unknown
}

const writesAtOnce = 4
/** A replica with another configuration may decide otherwise; two would overwrite each other no more often than this. */
const objectionMillis = 300_000
const everyMillis = 60_000
/** Spreads replicas, so that usually one of them writes and the others see it. */
const quietMillis = 100
const quietSpread = 400
const mostQuietMillis = 2_000
const condition = 'Accepted'

/**
 * Writes into the status of each TokenGrant whether it counts, with an event when that changes. Every replica may write:
 * they decide alike, the object's version lets one of them win, and none repeats what another one decided otherwise.
 */
export class GrantStatusWriter {
  readonly #parts: GrantStatusParts
  readonly #writing: QuietCall
  readonly #events: ClusterEvents
  /** By the uid of the grant. */
  #decided = new Map<string, Decision>()
  #timer: NodeJS.Timeout | undefined

  constructor(parts: GrantStatusParts) {
    this.#parts = parts
    const { log, cluster } = parts
    this.#events = new ClusterEvents({ ...parts, purpose: 'grants' })
    this.#writing = new QuietCall(() => this.#pass(), {
      quietMillis: quietMillis + Math.random() * quietSpread,
      mostQuietMillis,
      onError: (err) => log.warn('the status of grants could not be written', { cluster, err }),
    })
  }

  start(): void {
    this.#timer ??= setInterval(() => this.request(), everyMillis)
    this.#timer.unref()
    this.request()
  }

  /** Does nothing before the start. */
  request(): void {
    if (this.#timer !== undefined) this.#writing.request()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    await this.#writing.close()
  }

  async #pass(): Promise<void> {
    const before = this.#decided
    this.#decided = new Map()
    const failures: Failure[] = []
    await inParallel([...this.#parts.judged()], writesAtOnce, async (one) => {
      const failure = await this.#write(one, before)
      if (failure !== undefined) failures.push(failure)
    })
    const [first] = failures
    if (first === undefined) return
    const { log, cluster } = this.#parts
    log.warn('the status of grants could not be written', { cluster, grants: failures.length, ...first })
  }

  async #write({ object, verdict }: JudgedGrant, before: ReadonlyMap<string, Decision>): Promise<Failure | undefined> {
    const { clock, watches } = this.#parts
    const { name, namespace = '', uid, resourceVersion } = object.metadata
    const { metadata, status: present } = object.content
    const generation = isJsonObject(metadata) ? Number(metadata['generation'] ?? 0) : 0
    const text = JSON.stringify([generation, verdict])
    const known = before.get(uid)
    const isSame = known?.text === text
    const since = isSame ? known.since : performance.now()
    const status = statusToWrite(present, verdict, generation, clock(), condition)
    if (status === undefined || (isSame && performance.now() - since < objectionMillis)) {
      this.#decided.set(uid, { text, since })
      return undefined
    }
    try {
      const { group, version } = tokenGrants
      const written = {
        apiVersion: `${group}/${version}`,
        kind: 'TokenGrant',
        metadata: { name, namespace, resourceVersion, uid },
        status,
      }
      await watches.replaceStatus({ ...tokenGrants, namespace }, name, written)
      this.#decided.set(uid, { text, since: performance.now() })
    } catch (err) {
      // Its next version is on its way.
      if (err instanceof ObjectMissing || (err instanceof GatewayError && err.code === 'VERSION_MISMATCH'))
        return undefined
      // Tried again as late as after an objection, since the reason seldom passes sooner.
      this.#decided.set(uid, { text, since: performance.now() })
      return { grant: grantName({ namespace, name }), err }
    }
    if (conditionOf(present) !== verdict.status) this.#report({ object, verdict })
    return undefined
  }

  #report({ object, verdict }: JudgedGrant): void {
    const { name, namespace = '', uid } = object.metadata
    const { group, version } = tokenGrants
    this.#events.report({
      namespace,
      prefix: 'gatehouse-grant-',
      controller: 'gatehouse.dev/grants',
      action: 'HonorGrant',
      reason: verdict.status === 'True' ? 'GrantAccepted' : 'GrantRefused',
      type: verdict.status === 'True' ? 'Normal' : 'Warning',
      regarding: { apiVersion: `${group}/${version}`, kind: 'TokenGrant', name, uid },
      note: `${verdict.reason}: ${verdict.message}`,
    })
  }
}

/** The status of the condition as it is stored. */
function conditionOf(status: unknown): unknown {
  const list = isJsonObject(status) ? status['conditions'] : undefined
  const conditions: readonly unknown[] = Array.isArray(list) ? list : []
  const found = conditions.find((one) => isJsonObject(one) && one['type'] === condition)
  return isJsonObject(found) ? found['status'] : undefined
}
