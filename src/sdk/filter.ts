import type { Issues } from '#kernel/issues.ts'
import type { Closable } from '#kernel/scope.ts'
import type { ApprovalLinkPage } from '#sdk/approval-link.ts'
import { type ErrorFormat, jsonErrors } from '#sdk/error-format.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { AttributeFlow } from '#sdk/flow.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { ParameterTable } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { ParseContext } from '#sdk/parse-context.ts'

export type Next = () => Promise<GatewayResponse>

/** A link of a URL's filter chain. It answers by returning a response, or passes on with `next()`. */
export interface Filter extends Closable {
  handle(exchange: Exchange, next: Next): Promise<GatewayResponse>
}

export interface PreparedFilter {
  readonly className: string
  /** True: the filter answers every request itself, so nothing behind it is reached. `sometimes`: only it can tell. */
  readonly answers: boolean | 'sometimes'
  readonly errors: ErrorFormat
  /** Changes may come as HTML forms, since each brings a proof of its own that no other site can have. */
  readonly takesForms: boolean
  /** Where the links of approval mails are to lead, if this filter answers them. */
  readonly approvalLinks: ApprovalLinkPage | undefined
  /** What `explain` prints about it: workflows, targets. */
  readonly summary: readonly { readonly label: string; readonly value: string }[]
  /** How attributes travel through it, for the data-flow check. */
  readonly flow: AttributeFlow | undefined
  create(host: ModuleHost): Promise<Filter>
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
  /** See PreparedFilter; no form is taken when absent. */
  readonly takesForms?: boolean
  /** Pure: no I/O, no clock. Reports every problem into `issues`. */
  parse(params: Params, issues: Issues, context: ParseContext): C
  create(config: C, host: ModuleHost): Filter | Promise<Filter>
  approvalLinks?(config: C): ApprovalLinkPage
  summarize?(config: C): PreparedFilter['summary']
  flow?(config: C): AttributeFlow
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
        approvalLinks: definition.approvalLinks?.(config),
        summary: definition.summarize?.(config) ?? [],
        flow: definition.flow?.(config),
        create: async (host) => definition.create(config, host),
      }
    },
  }
}
