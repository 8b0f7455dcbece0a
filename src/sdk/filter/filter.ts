import type { Subject } from '#identity/subject.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Closable } from '#kernel/scope.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterApi } from '#sdk/filter/filter-api.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { ChangeSubject, PreparedSubjectFilter } from '#sdk/filter/subject-filter.ts'
import type { AttributeFlow, CallableWorkflows } from '#sdk/flow/flow.ts'
import { type ErrorFormat, jsonErrors } from '#sdk/http/error-format.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { PageLook } from '#sdk/http/page-look.ts'
import type { ModuleDefinition, ModuleOf } from '#sdk/module/module.ts'
import type { LookupHost } from '#sdk/target/target.ts'

/** Calls the filters after this one, which see the given subject instead of the caller's. */
type Next = (subject?: Subject) => Promise<GatewayResponse>

/** A link of a URL's filter chain. It returns a response, or calls `next()`. */
export interface Filter extends Closable {
  handle(exchange: Exchange, next: Next): Awaitable<GatewayResponse>
}

/** Where another filter is. */
export interface FilterPlace {
  readonly application: string
  readonly uri: string
}

/**
 * A filter of a URL whose parameters are checked. It also has the members that its definition `offers`: a caller that looks for one
 * of them declares its type with a guard, such as `offersApprovalLinks`.
 */
export interface PreparedFilter {
  readonly className: string
  /** True: the filter answers every request itself, so no later one is reached. `sometimes`: only the filter knows. */
  readonly answers: boolean | 'sometimes'
  readonly errors: ErrorFormat
  /** It changes neither requests nor responses, and is only there to load existing YAML. */
  readonly hasNoEffect?: boolean
  /** Present if all it does is to change the subject that later filters see. */
  readonly subjectFilter?: PreparedSubjectFilter | undefined
  /** Changes may be HTML forms, since each has a proof that no other site can have. */
  readonly takesForms: boolean
  /** A request to it does not count as use of the caller's session. */
  readonly leavesSession?: boolean
  /**
   * Prefixes of `pathInfo`, such as `/assets/`, with public content: everyone may read there, without a login and
   * without a rule, so that a page can load its files after its session has ended. Only a URL's first filter has
   * them, since one before it may refuse.
   */
  readonly openPaths?: readonly string[]
  /** Chains that it may request by `Exchange.requireLogin`. */
  readonly chains?: readonly string[]
  /** The public URL of the portal, without a slash at its end, if this filter serves it: messages link there. */
  readonly portalUrl?: string | undefined
  /** The filter whose profile it uses. */
  readonly profileOf?: FilterPlace | undefined
  /** What it contributes to the look of the pages of its hosts. */
  readonly look?: PageLook | undefined
  /** The API that it serves, if programs and pages call one. */
  readonly api?: FilterApi | undefined
  /** What `explain` prints about it: workflows, targets. */
  readonly summary: readonly { readonly label: string; readonly value: string }[]
  /** How attributes pass through it, for the data-flow check. */
  readonly flow: AttributeFlow | undefined
  /** For the check of what callers can make workflows write. */
  readonly callable?: CallableWorkflows | undefined
  create(host: FilterHost): Promise<Filter>
}

/** A kind of filter, as the catalog lists it. */
export interface FilterModule extends ModuleOf<PreparedFilter> {
  /** Of the API that it answers, for a URL whose application is set aside. */
  readonly errors?: ErrorFormat | undefined
}

/** `H` is the host of the filter's feature; the gateway's own host has the members of all of them. */
interface FilterDefinition<C, H extends FilterHost> extends Omit<ModuleDefinition<C, Filter, H>, 'lookups'> {
  readonly answers: PreparedFilter['answers']
  readonly errors?: ErrorFormat
  /** See PreparedFilter. */
  readonly hasNoEffect?: boolean
  /** See PreparedFilter; no forms if absent. */
  readonly takesForms?: boolean
  /** See PreparedFilter. */
  readonly leavesSession?: boolean
  /** See PreparedFilter. */
  readonly openPaths?: readonly string[]
  /** See PreparedFilter. */
  portalUrl?(config: C): string | undefined
  /** See PreparedFilter. */
  chains?(config: C): readonly string[]
  /** See PreparedFilter. */
  profileOf?(config: C): FilterPlace
  /** What other parts of Gatehouse find on the prepared filter. */
  offers?(config: C): object
  /** See PreparedFilter. */
  look?(config: C): PageLook
  /** See PreparedFilter. */
  api?(config: C): FilterApi
  summarize?(config: C): PreparedFilter['summary']
  flow?(config: C): AttributeFlow
  callable?(config: C): CallableWorkflows
  /** See PreparedFilter. */
  subjectFilter?(config: C): PreparedSubjectFilter
}

/** Describes a kind of filter. */
export function defineFilter<C, H extends FilterHost = FilterHost>(definition: FilterDefinition<C, H>): FilterModule {
  const { className, parameters, answers } = definition
  return {
    className,
    aliases: definition.aliases ?? [],
    parameters,
    errors: answers === true ? definition.errors : undefined,
    prepare: (params, issues, context) => {
      const config = definition.parse(params, issues, context)
      return {
        ...definition.offers?.(config),
        className,
        answers,
        errors: definition.errors ?? jsonErrors,
        hasNoEffect: definition.hasNoEffect ?? false,
        takesForms: definition.takesForms ?? false,
        leavesSession: definition.leavesSession ?? false,
        openPaths: definition.openPaths ?? [],
        portalUrl: definition.portalUrl?.(config),
        chains: definition.chains?.(config) ?? [],
        profileOf: definition.profileOf?.(config),
        look: definition.look?.(config),
        api: definition.api?.(config),
        summary: definition.summarize?.(config) ?? [],
        flow: definition.flow?.(config),
        callable: definition.callable?.(config),
        subjectFilter: definition.subjectFilter?.(config),
        create: async (host: H) => definition.create(config, host),
      }
    },
  }
}

/**
 * Describes a kind of filter that only changes the subject that later filters see. At an identity provider, the claims
 * are made from that subject.
 */
export const defineSubjectFilter = <C>(definition: ModuleDefinition<C, ChangeSubject, LookupHost>): FilterModule =>
  defineFilter({
    ...definition,
    answers: false,
    subjectFilter: (config) => ({
      className: definition.className,
      create: async (host) => definition.create(config, host),
    }),
    create: async (config, host) => {
      const change = await definition.create(config, host)
      return { handle: async ({ subject }, next) => next(await change(subject)) }
    },
  })
