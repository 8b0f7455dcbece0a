import type { ScimHost } from '#features/scim/host.ts'
import type { UnfinishedChange } from '#sdk/workflow/workflow.ts'
import { stillUnderWay, UnfinishedRun } from '#workflows/record/run-requests.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import { type GatewayConfig, lookupPlace } from './gateway-config.ts'
import type { ScimCall } from './scim-call.ts'

/** What a request changes. A resource that is being created has no id yet, so its name stands for it. */
interface ChangedResource {
  readonly type: string
  /** Of a resource that exists, or did. */
  readonly id?: string
  /** Logins of the user, or keys of the group. */
  readonly names: readonly string[]
  /** The resource is not in the lookup target. */
  readonly isAbsent?: boolean
}

/** What was found before a change. */
export interface Settled {
  /** The key of the resource, for the runs of this request. */
  readonly resource: string
  /** Earlier changes of the same resource that a target refused; this one replaces them. */
  readonly replaces: readonly UnfinishedChange[]
  /**
   * An earlier request has begun this change: it was finished now, or this request has to finish it. Only a create that a
   * target refused may be that of another client, since no client has got the user yet.
   */
  readonly hasBegun: boolean
}

/**
 * Changes that a workflow made in some of its targets and not in others. They come first: a request for the same user or
 * group waits until they are finished, and fails if that takes too long. Where every workflow writes once, there are none,
 * except those of an earlier configuration.
 */
export class UnfinishedChanges {
  readonly #runs: RunService
  readonly #place: string
  readonly #partial: ReadonlySet<string>

  constructor(
    { lookup, workflows }: GatewayConfig,
    host: ScimHost,
    /** Changes were unfinished when this configuration took over. */
    hasEarlier: boolean,
  ) {
    this.#runs = host.runs
    this.#place = lookupPlace(lookup)
    const names = Object.values(workflows).flatMap((name) => (name === undefined || name === '' ? [] : [name]))
    this.#partial = new Set(names.filter((name) => hasEarlier || host.workflowWrites(name).severalTimes))
  }

  /** Whether some changes may be unfinished. */
  get arePossible(): boolean {
    return this.#partial.size > 0
  }

  /** The lookup target can't show whether the workflow has nothing to do, since it also writes elsewhere. */
  writesElsewhere(workflow: string | undefined): boolean {
    return workflow !== undefined && this.#partial.has(workflow)
  }

  /** Throws TARGET_UNREACHABLE with Retry-After while an earlier change is unfinished; a dry run tries none again. */
  async settle({ exchange, dryRun }: ScimCall, changed: ChangedResource): Promise<Settled> {
    const { type, id, names, isAbsent = false } = changed
    const own = [
      ...(id === undefined ? [] : [this.#key(type, 'id', id)]),
      ...names.map((name) => this.#key(type, 'name', name)),
    ]
    const [resource = ''] = own
    if (!this.arePossible) return { resource, replaces: [], hasBegun: false }
    if (dryRun !== undefined) {
      if (await this.#runs.hasEarlier({ subjects: names, resource })) throw stillUnderWay(names[0] ?? resource)
      return { resource, replaces: [], hasBegun: false }
    }
    const { finished, refused } = await this.#runs.settle({
      subjects: names,
      resource,
      requester: exchange.subject.uid,
    })
    const isOwn = ({ resource: changed }: UnfinishedChange): boolean => own.includes(changed)
    // A former user of the login, or a login that only some systems know, is not settled by a change of another user.
    const blocking = refused.find((one) => {
      const isSameType = one.resource.startsWith(`${this.#place} ${type} `)
      return isSameType && (!isOwn(one) || one.written === undefined || isAbsent)
    })
    if (blocking !== undefined) throw new UnfinishedRun(blocking.id, { state: 'earlier', isRetried: false })
    const replaces = refused.filter(isOwn)
    const isMine = ({ requester }: UnfinishedChange): boolean => requester === exchange.subject.uid
    const hasBegun = id === undefined ? replaces.length > 0 : replaces.some(isMine)
    return { resource, replaces, hasBegun: hasBegun || finished.some((one) => own.includes(one)) }
  }

  /**
   * Waits for unfinished changes of a user that joins or leaves a group: a system that lacks the user would create it from
   * the login alone. Throws as `settle` does, and if a target refused to create the user.
   */
  async settleMember(call: ScimCall, id: string, login: string): Promise<void> {
    if (!this.arePossible) return
    const { replaces } = await this.settle(call, { type: 'User', id, names: [login] })
    const created = this.#key('User', 'name', login)
    const refused = replaces.find(({ resource }) => resource === created)
    if (refused !== undefined) throw new UnfinishedRun(refused.id, { state: 'earlier', isRetried: false })
  }

  /** Whether the gateway has finished a change of the resource after this client got an error for it; true once. */
  async wasFinished({ exchange, dryRun }: ScimCall, { resource }: Settled): Promise<boolean> {
    if (!this.arePossible) return false
    const { uid } = exchange.subject
    return await (dryRun === undefined ? this.#runs.takeFinished(resource, uid) : this.#runs.hasFinished(resource, uid))
  }

  #key(type: string, by: 'id' | 'name', value: string): string {
    return `${this.#place} ${type} ${by} ${value.toLowerCase()}`
  }
}
