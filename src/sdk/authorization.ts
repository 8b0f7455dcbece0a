import type { Subject } from '#identity/subject.ts'
import type { Issues } from '#kernel/issues.ts'
import type { Closable } from '#kernel/scope.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { ParameterTable } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { ParseContext } from '#sdk/parse-context.ts'

/** A rule of scope `custom`. Throws when it cannot decide; that denies. */
export interface Authorization extends Closable {
  /** `params` are the texts behind `!` in the constraint. */
  isAuthorized(subject: Subject, params: readonly string[]): Promise<boolean> | boolean
  /**
   * Whom it may let pass, as logins or names of entries. Approvals ask it for whom to tell; without it, such a rule finds
   * no approvers. Whoever decides is asked about by `isAuthorized` all the same.
   */
  listPossibleApprovers?(params: readonly string[]): Promise<readonly string[]>
}

export interface PreparedAuthorization {
  readonly className: string
  create(host: ModuleHost): Promise<Authorization>
}

export interface AuthorizationModule {
  readonly className: string
  readonly aliases: readonly string[]
  readonly parameters: ParameterTable
  prepare(params: Params, issues: Issues, context: ParseContext): PreparedAuthorization
}

export interface AuthorizationDefinition<C> {
  readonly className: string
  readonly aliases?: readonly string[]
  readonly parameters: ParameterTable
  /** Pure: no I/O, no clock. */
  parse(params: Params, issues: Issues, context: ParseContext): C
  create(config: C, host: ModuleHost): Authorization | Promise<Authorization>
}

export function defineAuthorization<C>(definition: AuthorizationDefinition<C>): AuthorizationModule {
  const { className, parameters } = definition
  return {
    className,
    aliases: definition.aliases ?? [],
    parameters,
    prepare: (params, issues, context) => {
      const config = definition.parse(params, issues, context)
      return { className, create: async (host) => definition.create(config, host) }
    },
  }
}
