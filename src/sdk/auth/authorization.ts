import type { Subject } from '#identity/subject.ts'
import type { Closable } from '#kernel/scope.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'

/** A rule of scope `custom`. Throws if it can't decide; that denies. */
export interface Authorization extends Closable {
  /** `params` are the texts after `!` in the constraint. */
  isAuthorized(subject: Subject, params: readonly string[]): Promise<boolean> | boolean
  /**
   * The users that it may allow, as logins or names of entries. Approvals notify them; without it, such a rule
   * finds no approvers. `isAuthorized` still checks the user who decides.
   */
  listPossibleApprovers?(params: readonly string[]): Promise<readonly string[]>
}

/** What a custom authorization may use of Gatehouse. */
interface AuthorizationHost extends ModuleHost {
  readonly sessions: Pick<SessionAccess, 'ofUser'>
}

/** A custom authorization whose parameters are checked. */
export type PreparedAuthorization = Prepared<Authorization, AuthorizationHost>
/** A kind of custom authorization, as the catalog lists it. */
export type AuthorizationModule = Module<Authorization, AuthorizationHost>

/** Describes a kind of custom authorization. */
export const defineAuthorization = <C>(
  definition: ModuleDefinition<C, Authorization, AuthorizationHost>,
): AuthorizationModule => defineModule(definition)
