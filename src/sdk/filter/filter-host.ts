import type { MemberDirectory } from '#identity/directory.ts'
import type { Subject } from '#identity/subject.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import type { MetricsAccess } from '#sdk/filter/metrics-access.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import type { ConfiguredTexts } from '#sdk/page/configured-texts.ts'
import type { Rule, RuleDecision } from '#sdk/rule/rule.ts'
import type { TargetSource } from '#sdk/target/target.ts'
import type { WorkflowStarter } from '#sdk/workflow/workflow.ts'

/** What every filter may use of Gatehouse. A feature's own host extends it. */
export interface FilterHost extends ModuleHost {
  readonly targets: TargetSource
  /** The virtual directory. */
  readonly directory: MemberDirectory
  readonly keys: KeySource
  /** One passing rule is enough; no rule denies. */
  authorize(subject: Subject, rules: readonly Rule[]): Promise<RuleDecision>
  readonly workflows: WorkflowStarter
  /** The attributes from which a workflow, those it calls, or any target, make logins; `any` if a mapper may read any attribute. */
  loginAttributes(workflow: string): ReadonlySet<string> | 'any'
  readonly sessions: SessionAccess
  /** Texts of the configuration in other languages; absent if there are none. */
  readonly texts?: ConfiguredTexts | undefined
  /** Counted by all processes of the gateway together. */
  readonly rateLimits: RateLimits
  /** Absent in commands. */
  readonly metrics?: MetricsAccess
}
