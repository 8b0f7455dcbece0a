import type { Subject } from '#identity/subject.ts'
import type { Closable } from '#kernel/scope.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'

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

export type PreparedAuthorization = Prepared<Authorization>
export type AuthorizationModule = Module<Authorization>

export const defineAuthorization = <C>(definition: ModuleDefinition<C, Authorization>): AuthorizationModule =>
  defineModule(definition)
