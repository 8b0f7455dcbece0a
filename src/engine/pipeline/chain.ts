import type { Subject } from '#identity/subject.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import type { SessionContribution } from '#sdk/auth/session.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { LoginLimits } from '#sdk/module/configuration.ts'

export interface Chain {
  readonly name: string
  readonly level: number
  readonly root: string
  readonly finishOnRequiredSuccess: boolean
  readonly links: readonly ChainLink[]
  /** How many failed tries lock an account; the default limits if absent. */
  readonly limits?: LoginLimits | undefined
}

export interface ChainLink {
  readonly name: string
  readonly required: boolean
  readonly mechanism: AuthMechanism
  /** The URI of requests that belong to a login which waits for this mechanism. */
  readonly uri?: string | undefined
  readonly interactive?: boolean | undefined
  /** Chains it may hand over to. */
  readonly includes?: readonly string[] | undefined
}

type Rejection = Extract<AuthOutcome, { kind: 'rejected' }>

/** A link that is asked again when the user is looked up again. */
export interface ChainStep {
  readonly chain: string
  readonly link: number
  readonly name: string
}

/** What a chain has established so far. */
export interface Established {
  readonly subject: Subject | undefined
  readonly session: SessionContribution
  /** In order, since the subject was found in the directory; none if it was not. */
  readonly renewals: readonly ChainStep[]
}

/** `before` is what was established when the link was reached: an optional link that fails restores it. */
export interface ChainFrame extends ChainStep {
  readonly before: Established
}

/** How far a chain has come. The place is a link, below the links that include its chain, the outermost first. */
export interface ChainPosition extends Established {
  readonly place: readonly ChainFrame[]
}

export type ChainOutcome =
  | (Established & { readonly kind: 'authenticated'; readonly subject: Subject })
  | {
      readonly kind: 'challenge'
      readonly response: GatewayResponse
      readonly state: JsonObject | undefined
      readonly position: ChainPosition
    }
  | Rejection

/** How mechanisms are called. */
export interface ChainCall {
  begin(link: ChainLink, chain: Chain, subject: Subject | undefined): Promise<AuthOutcome>
  /** Called for the one link that a login waits for. */
  proceed?(link: ChainLink, chain: Chain, subject: Subject | undefined): Promise<AuthOutcome>
}

/** How deep a chain may include others; `check` rejects circles, this limits the rest. */
const maxIncludes = 8

type Found = Extract<AuthOutcome, { kind: 'authenticated' }>['subject']

interface Progress {
  readonly outer: Chain
  readonly call: ChainCall
  /** The rest of the place at which a login continues. */
  resume: readonly ChainFrame[]
  subject: Subject | undefined
  session: SessionContribution
  renewals: readonly ChainStep[]
}

type LinksOutcome =
  | { readonly kind: 'done'; readonly rejection: Rejection | undefined }
  | Extract<ChainOutcome, { kind: 'challenge' }>

/**
 * Runs the mechanisms of a chain in order; the first required one that rejects ends it. If none is required, the
 * first that establishes a user does. A chain stops at a mechanism that needs input from the user, and can be
 * resumed there.
 */
export class ChainRunner {
  readonly #chains: ReadonlyMap<string, Chain>
  /** One subject object per mechanism's response and chain, so that decisions can be cached by it. */
  readonly #subjects = new WeakMap<object, Map<string, Subject>>()

  constructor(chains: ReadonlyMap<string, Chain>) {
    this.#chains = chains
  }

  get(name: string): Chain | undefined {
    return this.#chains.get(name)
  }

  run(chain: Chain, call: ChainCall): Promise<ChainOutcome> {
    return this.#run(chain, call, { place: [], subject: undefined, session: {}, renewals: [] })
  }

  /** Resumes the chain; the place must be one of this configuration (`linkAt`). */
  resume(chain: Chain, call: ChainCall, position: ChainPosition): Promise<ChainOutcome> {
    return this.#run(chain, call, position)
  }

  /** The links of a chain, and of those that it may hand over to. */
  reachable(chain: Chain): readonly ChainLink[] {
    const seen = new Set<Chain>()
    const pending = [chain]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (seen.has(next)) continue
      seen.add(next)
      for (const name of next.links.flatMap((link) => link.includes ?? [])) {
        const included = this.#chains.get(name)
        if (included !== undefined) pending.push(included)
      }
    }
    return [...seen].flatMap(({ links }) => links)
  }

  /** The subject after links were asked about it again. Rejected if the configuration no longer has one of them. */
  async renew(subject: Subject, steps: readonly ChainStep[]): Promise<Subject | Rejection> {
    let renewed = subject
    for (const { chain, link: index, name } of steps) {
      const links = this.#chains.get(chain)?.links
      const link = links?.[index]?.name === name ? links[index] : links?.find((other) => other.name === name)
      const outcome = await link?.mechanism.renew?.(renewed)
      if (outcome?.kind === 'rejected') return outcome
      if (outcome?.kind === 'authenticated') renewed = { ...subject, ...outcome.subject }
      else if (outcome?.kind !== 'passed') {
        return { kind: 'rejected', reason: `"${name}" of the chain "${chain}" cannot be asked again` }
      }
    }
    return renewed
  }

  /** The link of a place; undefined if the configuration now has another one there. */
  linkAt(place: readonly ChainFrame[]): ChainLink | undefined {
    let link: ChainLink | undefined
    for (const { chain, link: index, name } of place) {
      link = this.#chains.get(chain)?.links[index]
      if (link?.name !== name) return undefined
    }
    return link
  }

  async #run(chain: Chain, call: ChainCall, position: ChainPosition): Promise<ChainOutcome> {
    const { place, ...established } = position
    const progress: Progress = { outer: chain, call, resume: place, ...established }
    const outcome = await this.#runLinks(chain, progress, [])
    if (outcome.kind === 'challenge') return outcome
    if (outcome.rejection !== undefined) return outcome.rejection
    const { subject, session, renewals } = progress
    if (subject === undefined) return { kind: 'rejected', reason: `chain "${chain.name}" did not identify a user` }
    return { kind: 'authenticated', subject, session, renewals }
  }

  async #runLinks(chain: Chain, progress: Progress, above: readonly ChainFrame[]): Promise<LinksOutcome> {
    let softRejection: Rejection | undefined
    const [at, ...deeper] = progress.resume
    const first = at?.link ?? 0
    let missing = chain.links.slice(first).filter((link) => link.required).length
    const finishes = chain.finishOnRequiredSuccess || chain.links.every((link) => !link.required)
    for (const [index, link] of chain.links.entries()) {
      if (index < first) continue
      const isResumed = at !== undefined && index === first
      progress.resume = isResumed ? deeper : []
      const before: Established = isResumed && at !== undefined ? at.before : establishedBy(progress)
      const step: ChainStep = { chain: chain.name, link: index, name: link.name }
      const place = [...above, { ...step, before }]
      const outcome = await this.#ask(link, chain, progress, isResumed)
      if (outcome.kind === 'challenge') {
        const { response, state } = outcome
        return {
          kind: 'challenge',
          response,
          state,
          position: { place, ...establishedBy(progress) },
        }
      }
      let rejection: Rejection | undefined
      if (outcome.kind === 'include') {
        const included = this.#chains.get(outcome.chain)
        if (included === undefined || above.length >= maxIncludes) {
          throw new Error(`cannot include chain "${outcome.chain}"`)
        }
        const inner = await this.#runLinks(included, progress, place)
        if (inner.kind === 'challenge') return inner
        rejection = inner.rejection
      } else if (outcome.kind === 'rejected') {
        rejection = outcome
      } else {
        if (outcome.kind === 'authenticated') {
          if (outcome.subject.link !== progress.subject?.link) progress.renewals = []
          progress.subject = this.#subjectOf(outcome.subject, progress.outer)
        }
        if (link.mechanism.renew !== undefined && progress.subject?.link !== undefined) {
          progress.renewals = [...progress.renewals, step]
        }
        if (outcome.session !== undefined) progress.session = together(progress.session, outcome.session)
      }
      if (rejection !== undefined) {
        if (link.required) return { kind: 'done', rejection }
        softRejection ??= rejection
        Object.assign(progress, before)
        continue
      }
      if (link.required) missing--
      if (finishes && missing === 0 && progress.subject !== undefined) break
    }
    return { kind: 'done', rejection: progress.subject === undefined ? softRejection : undefined }
  }

  async #ask(link: ChainLink, chain: Chain, progress: Progress, isResumed: boolean): Promise<AuthOutcome> {
    const { call, subject, resume } = progress
    if (!isResumed) return await call.begin(link, chain, subject)
    const [inner] = resume
    if (inner !== undefined) return { kind: 'include', chain: inner.chain }
    if (call.proceed === undefined) throw new Error('a login is already in progress; the user is not asked again')
    return await call.proceed(link, chain, subject)
  }

  #subjectOf(found: Found, chain: Chain): Subject {
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

const establishedBy = ({ subject, session, renewals }: Progress): Established => ({ subject, session, renewals })

const together = (one: SessionContribution, other: SessionContribution): SessionContribution => ({
  slots: { ...one.slots, ...other.slots },
  marks: [...(one.marks ?? []), ...(other.marks ?? [])],
})
