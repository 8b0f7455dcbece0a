import type { UserRef } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import type { Closable } from '#kernel/scope.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'
import type { LookupHost } from '#sdk/target/target.ts'

/** A rule of scope `custom`. Throws if it can't decide; that denies. */
export interface Authorization extends Closable {
  /** `params` are the texts after `!` in the constraint; `about` is the user of the request, in rules of approvals. */
  isAuthorized(subject: Subject, params: readonly string[], about?: UserRef): Promise<boolean> | boolean
  /**
   * The users that it may allow, as logins or names of entries. Approvals notify them; without it, such a rule
   * finds no approvers. `isAuthorized` still checks the user who decides.
   */
  listPossibleApprovers?(params: readonly string[], about?: UserRef): Promise<readonly string[]>
}

/** What a custom authorization may use of Gatehouse. */
interface AuthorizationHost extends LookupHost {
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
