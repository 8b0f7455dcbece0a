import type { CopyHealth } from '#audit/copy-health.ts'
import { causeText, type FoundObject, servedCount, titleOf } from '#config/load/set-aside.ts'
import type { Logger } from '#kernel/logger.ts'
import { shownReason } from '#kernel/secret-values.ts'
import type { OutsideHealth } from '#server/composition/runtime.ts'

const mostObjects = 100

interface HealthParts {
  /** Rejects with the reason if requests can't be served. */
  ready(): Promise<void>
  check(): Promise<OutsideHealth>
  audit(): Promise<AuditHealth>
  /** The objects of the running configuration. */
  objects(): readonly FoundObject[]
  readonly log: Logger
}

/** The health of one worker, as its supervisor knows it. */
export interface WorkerHealth {
  readonly worker: number
  readonly pid?: number
  readonly state: 'ready' | 'not ready' | 'starting' | 'restarting'
  /** The hash of the configuration that it serves. */
  readonly configuration?: string
  readonly problem?: string
}

/** The copies of the audit, and of its anchors. */
export interface AuditHealth {
  readonly sinks: readonly CopyHealth[]
  readonly anchors: readonly CopyHealth[]
}

export interface HealthReport extends OutsideHealth {
  readonly status: 'up' | 'degraded' | 'down'
  readonly gateway: { readonly health: 'up' | 'down'; readonly problem?: string }
  /** Absent if no worker could be asked. */
  readonly configuration?: {
    readonly served: number
    readonly setAside: number
    readonly objects?: readonly { readonly object: string; readonly reason: string }[]
  }
  /** Absent if no worker could be asked. */
  readonly audit?: AuditHealth
  /** Only with `--workers`. */
  readonly workers?: readonly WorkerHealth[]
}

/**
 * Says what the gateway itself and the systems around it can do now, with reasons: for operators, so it is served on the
 * private listener only. A target or issuer that is down, or an object that is set aside, does not make the gateway
 * unready, since everything else is served: restarting it or taking it out of rotation would not help.
 */
export async function readHealth({ ready, check, audit: copies, objects, log }: HealthParts): Promise<HealthReport> {
  const [[own, outside], audit] = await Promise.all([Promise.allSettled([ready(), check()]), copies()])
  if (outside.status === 'rejected') log.warn('the health of targets cannot be read', { err: outside.reason })
  const { targets, issuers } = outside.status === 'fulfilled' ? outside.value : { targets: [], issuers: [] }
  const found = objects()
  const aside = found.flatMap((object) =>
    object.cause === undefined ? [] : [{ object: titleOf(object), reason: causeText(object.cause) }],
  )
  const isDegraded =
    aside.length > 0 ||
    outside.status === 'rejected' ||
    [...targets, ...issuers, ...audit.sinks, ...audit.anchors].some(({ health }) => health === 'down')
  const configuration = {
    served: servedCount(found),
    setAside: aside.length,
    ...(aside.length === 0 ? {} : { objects: aside.slice(0, mostObjects) }),
  }
  const status = own.status === 'rejected' ? 'down' : isDegraded ? 'degraded' : 'up'
  const gateway = own.status === 'rejected' ? downBecause(own.reason) : ({ health: 'up' } as const)
  return { status, gateway, configuration, targets, issuers, audit }
}

export const downBecause = (reason: unknown): { readonly health: 'down'; readonly problem: string } => ({
  health: 'down',
  problem: shownReason(reason).slice(0, 500),
})
