import type { Ordered } from '#identity/page-in-memory.ts'

/** Names that are remembered at most, of all answers together. */
const maxNames = 250_000
const maxKeyLength = 10_000

/**
 * The names of the entries of long answers, in order, remembered for a short time: servers give no pages by number, so
 * each page would otherwise cost a pass over everything. Those who ask for the same at the same time share a pass.
 */
export class LongAnswers {
  readonly #millis: number
  readonly #now: () => number
  readonly #answers = new Map<string, { readonly names: Ordered<string>; readonly until: number }>()
  readonly #underWay = new Map<string, Promise<Ordered<string>>>()
  #writes = 0
  #sweeper: NodeJS.Timeout | undefined

  constructor(millis: number, now: () => number = () => performance.now()) {
    this.#millis = millis
    this.#now = now
  }

  /** Undefined when nothing, or nothing recent, is remembered. */
  recall(key: string): Ordered<string> | undefined {
    const answer = this.#answers.get(key)
    if (answer !== undefined && answer.until > this.#now()) return answer.names
    this.#answers.delete(key)
    return undefined
  }

  read(key: string, pass: () => Promise<Ordered<string>>): Promise<Ordered<string>> {
    const known = this.recall(key)
    if (known !== undefined) return Promise.resolve(known)
    const shared = this.#underWay.get(key)
    if (shared !== undefined) return shared
    const writes = this.#writes
    const reading = pass()
      .then((names) => {
        if (writes === this.#writes) this.#keep(key, names)
        return names
      })
      .finally(() => {
        if (this.#underWay.get(key) === reading) this.#underWay.delete(key)
      })
    this.#underWay.set(key, reading)
    return reading
  }

  /** Forgets one answer, so that it is read again. */
  drop(key: string): void {
    this.#answers.delete(key)
    this.#underWay.delete(key)
  }

  /** To be called after every change: whoever asks from then on sees it. */
  forget(): void {
    this.#writes++
    this.#answers.clear()
    this.#underWay.clear()
  }

  close(): void {
    clearTimeout(this.#sweeper)
    this.forget()
  }

  #keep(key: string, names: Ordered<string>): void {
    if (this.#millis === 0 || key.length > maxKeyLength || names.all.length > maxNames) return
    let total = names.all.length
    for (const { names: other } of this.#answers.values()) total += other.all.length
    for (const [oldest, { names: other }] of this.#answers) {
      if (total <= maxNames) break
      this.#answers.delete(oldest)
      total -= other.all.length
    }
    this.#answers.set(key, { names, until: this.#now() + this.#millis })
    clearTimeout(this.#sweeper)
    this.#sweeper = setTimeout(() => this.#answers.clear(), this.#millis).unref()
  }
}
