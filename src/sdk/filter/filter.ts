import type { Issues } from '#kernel/issues.ts'
import type { Closable } from '#kernel/scope.ts'
import { type ErrorFormat, jsonErrors } from '#sdk/filter/error-format.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { InvitationMail } from '#sdk/filter/registrations.ts'
import type { ParameterTable } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { ApprovalLinkPage } from '#sdk/workflow/approval-link.ts'
import type { AttributeFlow, CallableWorkflows } from '#sdk/workflow/flow.ts'

export type Next = () => Promise<GatewayResponse>

/** A link of a URL's filter chain. It returns a response, or calls `next()`. */
export interface Filter extends Closable {
  handle(exchange: Exchange, next: Next): Promise<GatewayResponse>
}

/** A form that users can be invited to, also from the command line. */
export interface InvitationForm {
  /** The name under which its invitations are stored. */
  name(application: string): string
  /** What is wrong with an invitation that sets these attributes. */
  problems(email: string, attributes: Readonly<Record<string, string>>): readonly string[]
  readonly mail: InvitationMail
}

export interface PreparedFilter {
  readonly className: string
  /** True: the filter answers every request itself, so no later one is reached. `sometimes`: only the filter knows. */
  readonly answers: boolean | 'sometimes'
  readonly errors: ErrorFormat
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
  /** The URL for links of approval mails, if this filter handles them. */
  readonly approvalLinks: ApprovalLinkPage | undefined
  /** The form for invitations, if this filter has one. */
  readonly invitations?: InvitationForm | undefined
  /** What `explain` prints about it: workflows, targets. */
  readonly summary: readonly { readonly label: string; readonly value: string }[]
  /** How attributes pass through it, for the data-flow check. */
  readonly flow: AttributeFlow | undefined
  /** For the check of what callers can make workflows write. */
  readonly callable?: CallableWorkflows | undefined
  create(host: FilterHost): Promise<Filter>
}

export interface FilterModule {
  readonly className: string
  readonly aliases: readonly string[]
  readonly parameters: ParameterTable
  prepare(params: Params, issues: Issues, context: ParseContext): PreparedFilter
}

export interface FilterDefinition<C> {
  readonly className: string
  readonly aliases?: readonly string[]
  readonly parameters: ParameterTable
  readonly answers: PreparedFilter['answers']
  readonly errors?: ErrorFormat
  /** See PreparedFilter; no forms if absent. */
  readonly takesForms?: boolean
  /** See PreparedFilter. */
  readonly leavesSession?: boolean
  /** See PreparedFilter. */
  readonly openPaths?: readonly string[]
  /** Pure: no I/O, no clock. Reports every problem into `issues`. */
  parse(params: Params, issues: Issues, context: ParseContext): C
  create(config: C, host: FilterHost): Filter | Promise<Filter>
  approvalLinks?(config: C): ApprovalLinkPage
  /** See PreparedFilter. */
  chains?(config: C): readonly string[]
  invitations?(config: C): InvitationForm | undefined
  summarize?(config: C): PreparedFilter['summary']
  flow?(config: C): AttributeFlow
  callable?(config: C): CallableWorkflows
}

export function defineFilter<C>(definition: FilterDefinition<C>): FilterModule {
  const { className, parameters, answers } = definition
  return {
    className,
    aliases: definition.aliases ?? [],
    parameters,
    prepare: (params, issues, context) => {
      const config = definition.parse(params, issues, context)
      return {
        className,
        answers,
        errors: definition.errors ?? jsonErrors,
        takesForms: definition.takesForms ?? false,
        leavesSession: definition.leavesSession ?? false,
        openPaths: definition.openPaths ?? [],
        approvalLinks: definition.approvalLinks?.(config),
        chains: definition.chains?.(config) ?? [],
        invitations: definition.invitations?.(config),
        summary: definition.summarize?.(config) ?? [],
        flow: definition.flow?.(config),
        callable: definition.callable?.(config),
        create: async (host) => definition.create(config, host),
      }
    },
  }
}
