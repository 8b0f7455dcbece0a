import type { LoginLimits } from '#config/configuration/configuration.ts'
import type { Subject } from '#identity/subject.ts'
import { type Awaitable, andThen, firstResult } from '#kernel/awaitable.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import type { SessionContribution } from '#sdk/auth/session.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

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
  begin(link: ChainLink, chain: Chain, subject: Subject | undefined): Awaitable<AuthOutcome>
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

type Challenge = Extract<ChainOutcome, { kind: 'challenge' }>
type LinksOutcome = { readonly kind: 'done'; readonly rejection: Rejection | undefined } | Challenge
const done: LinksOutcome = { kind: 'done', rejection: undefined }

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

  run(chain: Chain, call: ChainCall): Awaitable<ChainOutcome> {
    return this.#run(chain, call, { place: [], subject: undefined, session: {}, renewals: [] })
  }

  /** Resumes the chain; the place must be one of this configuration (`linkAt`). */
  resume(chain: Chain, call: ChainCall, position: ChainPosition): Awaitable<ChainOutcome> {
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

  #run(chain: Chain, call: ChainCall, position: ChainPosition): Awaitable<ChainOutcome> {
    const { place, subject, session, renewals } = position
    const progress: Progress = { outer: chain, call, resume: place, subject, session, renewals }
    return andThen(this.#runLinks(chain, progress, []), (outcome) => {
      if (outcome.kind === 'challenge') return outcome
      if (outcome.rejection !== undefined) return outcome.rejection
      const { subject, session, renewals } = progress
      if (subject === undefined) return { kind: 'rejected', reason: `chain "${chain.name}" did not identify a user` }
      return { kind: 'authenticated', subject, session, renewals }
    })
  }

  #runLinks(chain: Chain, progress: Progress, above: readonly ChainFrame[]): Awaitable<LinksOutcome> {
    const { links } = chain
    const [at, ...deeper] = progress.resume
    const first = at?.link ?? 0
    const finishes = chain.finishOnRequiredSuccess || links.every((link) => !link.required)
    let softRejection: Rejection | undefined
    let missing = 0
    for (let i = first; i < links.length; i++) if (links[i]?.required === true) missing++

    const runLink = (link: ChainLink, index: number): Awaitable<LinksOutcome | undefined> => {
      const resumed = index === first ? at : undefined
      progress.resume = resumed === undefined ? [] : deeper
      const before = resumed?.before ?? establishedBy(progress)
      const place = [...above, { chain: chain.name, link: index, name: link.name, before }]
      return andThen(this.#ask(link, chain, progress, resumed !== undefined), (outcome) =>
        andThen(this.#apply(outcome, link, progress, place), (applied) => {
          if (applied === undefined) {
            if (link.required) missing--
            return finishes && missing === 0 && progress.subject !== undefined ? done : undefined
          }
          if (applied.kind === 'challenge') return applied
          if (link.required) return { kind: 'done', rejection: applied }
          softRejection ??= applied
          Object.assign(progress, before)
          return undefined
        }),
      )
    }
    return andThen(
      firstResult(links, runLink, first),
      (ended) => ended ?? { kind: 'done', rejection: progress.subject === undefined ? softRejection : undefined },
    )
  }

  #ask(link: ChainLink, chain: Chain, progress: Progress, isResumed: boolean): Awaitable<AuthOutcome> {
    const { call, subject, resume } = progress
    if (!isResumed) return call.begin(link, chain, subject)
    const [inner] = resume
    if (inner !== undefined) return { kind: 'include', chain: inner.chain }
    if (call.proceed === undefined) throw new Error('a login is already in progress; the user is not asked again')
    return call.proceed(link, chain, subject)
  }

  /** Adds to the progress what the link at this place established; returns what it did not. */
  #apply(
    outcome: AuthOutcome,
    link: ChainLink,
    progress: Progress,
    place: readonly ChainFrame[],
  ): Awaitable<Rejection | Challenge | undefined> {
    if (outcome.kind === 'rejected') return outcome
    if (outcome.kind === 'challenge') {
      const { response, state } = outcome
      return { kind: 'challenge', response, state, position: { place, ...establishedBy(progress) } }
    }
    if (outcome.kind === 'include') {
      const included = this.#chains.get(outcome.chain)
      if (included === undefined || place.length > maxIncludes) {
        throw new Error(`cannot include chain "${outcome.chain}"`)
      }
      return andThen(this.#runLinks(included, progress, place), (inner) =>
        inner.kind === 'challenge' ? inner : inner.rejection,
      )
    }
    if (outcome.kind === 'authenticated') {
      if (outcome.subject.link !== progress.subject?.link) progress.renewals = []
      progress.subject = this.#subjectOf(outcome.subject, progress.outer)
    }
    if (link.mechanism.renew !== undefined && progress.subject?.link !== undefined) {
      const { chain, link: index, name } = place[place.length - 1] as ChainFrame
      progress.renewals = [...progress.renewals, { chain, link: index, name }]
    }
    if (outcome.session !== undefined) progress.session = together(progress.session, outcome.session)
    return undefined
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
  companions: [...(one.companions ?? []), ...(other.companions ?? [])],
})
