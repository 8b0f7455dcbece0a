import { setTimeout as delay } from 'node:timers/promises'
import { loginIdentity } from '#identity/identity.ts'
import { createKeySource } from '#keys/key-source.ts'
import type { Storage } from '#server/composition/stores.ts'
import { approvalLinkKey, signApprovalLink } from '#workflows/approvals/approval-link.ts'
import { approvalPath, approvers } from './chaos-configuration.ts'
import type { Replica } from './replica.ts'
import type { SeededRandom } from './seeded-random.ts'

const hourMillis = 3600_000

/** Approvers who all decide at the same time, at different replicas, and not always alike. */
export class Deciders {
  /** Answers that said "you have decided this", by approval. */
  readonly decided = new Map<string, number>()
  readonly #storage: Storage
  readonly #replicas: readonly Replica[]
  readonly #random: SeededRandom
  readonly #dataFolder: string
  #stopped = false

  constructor(parts: {
    readonly storage: Storage
    readonly replicas: readonly Replica[]
    readonly random: SeededRandom
    readonly dataFolder: string
  }) {
    this.#storage = parts.storage
    this.#replicas = parts.replicas
    this.#random = parts.random
    this.#dataFolder = parts.dataFolder
  }

  stop(): void {
    this.#stopped = true
  }

  /** Decides every open approval, until it is stopped. */
  async run(): Promise<void> {
    const keys = createKeySource({
      configuration: this.#dataFolder,
      data: this.#dataFolder,
      certificate: () => undefined,
    })
    const key = await approvalLinkKey(keys)
    while (!this.#stopped) {
      const open = await this.#open()
      await Promise.all(
        open.map(async ({ id, version }) => {
          await delay(this.#random.between(0, 300))
          const first = this.#random.next() < 0.8
          const votes = approvers.map((approver, i) => ({
            approver,
            approve: i === 0 || this.#random.next() < 0.5 ? first : !first,
          }))
          await Promise.all(
            votes.map(async ({ approver, approve }) => {
              const claims = { approval: id, version, approver, identity: loginIdentity(approver), approve }
              await this.#press(id, await signApprovalLink(claims, new Date(Date.now() + hourMillis), key))
            }),
          )
        }),
      )
      await delay(200)
    }
  }

  async #open() {
    try {
      const { approvals } = await this.#storage.approvals.listOpen(new Date(Date.now() + hourMillis), { limit: 50 })
      return approvals
    } catch {
      // The database is being restarted.
      return []
    }
  }

  async #press(approval: string, token: string): Promise<void> {
    const { url } = this.#random.pick(this.#replicas)
    try {
      const response = await fetch(url + approvalPath, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', origin: url, 'sec-fetch-site': 'same-origin' },
        body: new URLSearchParams({ token }),
        signal: AbortSignal.timeout(10_000),
      })
      await response.text()
      if (response.status === 200) this.decided.set(approval, (this.decided.get(approval) ?? 0) + 1)
    } catch {
      // The called replica is dead or dying.
    }
  }
}
