import { changedPeople, type FollowedSource } from '#features/reconciliation/changes/changed-people.ts'
import type { FeedStore } from '#features/reconciliation/store/feed-store.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import type { ReconciliationPlans } from './plans.ts'

interface ChangeFeedParts {
  readonly feeds: FeedStore
  readonly plans: Pick<ReconciliationPlans, 'request'>
  readonly log: Logger
  /** Those of the current configuration. */
  followed(): readonly FollowedSource[]
}

const lookMillis = 1000

/**
 * Requests a plan of the people who changed, seconds after a change in the audit. Of several processes, and after one died,
 * people may be compared twice, but no change is left out: the position moves after a plan for it is stored.
 */
export class ChangeFeed implements Closable {
  readonly #parts: ChangeFeedParts
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined

  constructor(parts: ChangeFeedParts) {
    this.#parts = parts
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#round ??= this.look().finally(() => {
        this.#round = undefined
      })
    }, lookMillis)
    this.#timer.unref()
  }

  async look(): Promise<void> {
    const { followed, log } = this.#parts
    for (const source of followed()) {
      try {
        await this.#follow(source)
      } catch (err) {
        log.warn('the changes for a reconciliation could not be read', { reconciliation: source.name, err })
      }
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#round
  }

  async #follow({ name, counts }: FollowedSource): Promise<void> {
    const { feeds, plans } = this.#parts
    const own = { by: { login: ownTarget }, isAutomatic: true }
    const part = await feeds.read(name)
    if (part === undefined) {
      const end = await feeds.end()
      const { isNew } = await plans.request(name, { ...own, reason: 'it is not known who has changed' })
      if (isNew) await feeds.start(name, end)
      return
    }
    const { records, positions } = part
    if (records.length === 0) return
    const { logins, isWide } = changedPeople(records, counts)
    if (logins.length > 0 || isWide) {
      const what = isWide
        ? { reason: 'a group was renamed or deleted' }
        : { reason: 'changes of people', people: logins }
      // A plan that is under way may have read its people before; the next one looks at them again.
      const { isNew } = await plans.request(name, { ...own, ...what })
      if (!isNew) return
    }
    await feeds.move(name, positions)
  }
}
