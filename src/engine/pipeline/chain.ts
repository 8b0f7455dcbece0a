import type { Subject } from '#identity/subject.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth-mechanism.ts'
import type { GatewayRequest } from '#sdk/http.ts'

export interface Chain {
  readonly name: string
  readonly level: number
  readonly root: string
  readonly finishOnRequiredSuccess: boolean
  readonly links: readonly ChainLink[]
}

export interface ChainLink {
  readonly name: string
  readonly required: boolean
  readonly mechanism: AuthMechanism
}

type Rejection = Extract<AuthOutcome, { kind: 'rejected' }>
export type ChainOutcome = { readonly kind: 'authenticated'; readonly subject: Subject } | Rejection

/** How deep a chain may include others; `check` refuses circles, this bounds the rest. */
const maxIncludes = 8

/**
 * Runs chains: mechanisms in their order; the first required one that rejects ends it. Where none is required, the
 * first that establishes someone does.
 */
export class ChainRunner {
  readonly #chains: ReadonlyMap<string, Chain>
  /** One subject object per mechanism's answer and chain, so that decisions can be remembered by it. */
  readonly #subjects = new WeakMap<object, Map<string, Subject>>()

  constructor(chains: ReadonlyMap<string, Chain>) {
    this.#chains = chains
  }

  async run(chain: Chain, request: GatewayRequest): Promise<ChainOutcome> {
    const result = await this.#runLinks(chain, chain, request, undefined, 0)
    if (result.rejection !== undefined) return result.rejection
    if (result.subject !== undefined) return { kind: 'authenticated', subject: result.subject }
    return { kind: 'rejected', reason: `chain "${chain.name}" established nobody` }
  }

  async #runLinks(
    chain: Chain,
    outer: Chain,
    request: GatewayRequest,
    before: Subject | undefined,
    depth: number,
  ): Promise<{ subject: Subject | undefined; rejection: Rejection | undefined }> {
    let subject = before
    let softRejection: Rejection | undefined
    let missing = chain.links.filter((link) => link.required).length
    const finishes = chain.finishOnRequiredSuccess || missing === 0
    for (const link of chain.links) {
      const outcome = await link.mechanism.begin({ request, subject, root: chain.root })
      if (outcome.kind === 'include') {
        const included = this.#chains.get(outcome.chain)
        if (included === undefined || depth >= maxIncludes) throw new Error(`cannot include chain "${outcome.chain}"`)
        const inner = await this.#runLinks(included, outer, request, subject, depth + 1)
        if (inner.rejection !== undefined) {
          if (link.required) return inner
          softRejection ??= inner.rejection
          continue
        }
        subject = inner.subject
      } else if (outcome.kind === 'rejected') {
        if (link.required) return { subject, rejection: outcome }
        softRejection ??= outcome
        continue
      } else if (outcome.kind === 'authenticated') {
        subject = this.#subjectOf(outcome.subject, outer)
      }
      if (link.required) missing--
      if (finishes && missing === 0 && subject !== undefined) break
    }
    return { subject, rejection: subject === undefined ? softRejection : undefined }
  }

  #subjectOf(found: Extract<AuthOutcome, { kind: 'authenticated' }>['subject'], chain: Chain): Subject {
    let byChain = this.#subjects.get(found)
    if (byChain === undefined) {
      byChain = new Map()
      this.#subjects.set(found, byChain)
    }
    let subject = byChain.get(chain.name)
    if (subject === undefined) {
      subject = { ...found, level: chain.level, chain: chain.name }
      byChain.set(chain.name, subject)
    }
    return subject
  }
}
