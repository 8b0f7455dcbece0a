import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'
import type { Target, TargetSource } from '#sdk/target/target.ts'
import type { ServiceTokens } from './service-tokens.ts'

/** What a target may use of Gatehouse. */
export interface TargetHost extends ModuleHost {
  /** The other targets. They are created in any order, so a target may use one only when it is called. */
  readonly targets: TargetSource
  /** Our own OpenID Connect issuers, once they are started; absent if none are configured. */
  readonly issuers?: ServiceTokens
  /** Opens users and groups in Gatehouse's own database, or in another one. The caller closes it. */
  openUserDirectory(options: UserDirectoryOptions): Promise<UserDirectory>
}

/** A target whose parameters are checked. */
export type PreparedTarget = Prepared<Target, TargetHost>
/** A kind of target, as the catalog lists it. */
export type TargetModule = Module<Target, TargetHost>

/** Describes a kind of target. */
export const defineTarget = <C>(definition: ModuleDefinition<C, Target, TargetHost>): TargetModule =>
  defineModule(definition)
