import type { NewGrant } from '#domain/grant.ts'
import type { Attributes } from '#identity/attributes.ts'
import type { Directory } from '#identity/directory.ts'
import type { Identity, RunIdentities } from '#identity/identity.ts'
import type { User } from '#identity/user.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import type { ParameterTable } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { StepMail } from '#sdk/notifier/mail.ts'
import type { Expiry } from '#sdk/target/expiry.ts'
import type { LookupHost, Target, TargetRequest, TargetSource } from '#sdk/target/target.ts'
import type { ApprovalDecision, ApprovalRequest } from '#sdk/workflow/approval.ts'
import type { TaskFlow } from '#sdk/workflow/flow.ts'
import type { GrantAccess } from '#sdk/workflow/grants.ts'
import type { BoundSubject, GroupChanges, ReadVersion, WorkflowCall } from '#sdk/workflow/workflow.ts'

/** The user a workflow works on. Tasks change it; nothing reaches a target before a provision task. */
export interface WorkflowUser extends User {
  userID: string
  attributes: Attributes
  groups: string[]
  /** Attributes that are to have no value from now on; what a task gave a value since then does not count. */
  cleared?: readonly string[]
  /** While true, `groups` says nothing: provisioning leaves memberships alone. A task that sets groups clears it. */
  keepGroups: boolean
  /** While `keepGroups` is true: memberships to add to and take from those the target holds. */
  groupChanges?: GroupChanges
  /** Memberships that a provision task gives for a time only. */
  timedGroups?: readonly TimedGroup[]
  /** Set by the caller, used once by a task that sets it at a target, and never logged. */
  password?: string
  requestReason?: string
  /** The login the user is to have from now on, at every target. */
  newUserID?: string
  /**
   * By target, the version that what is known of the user was read at; the first write to that target must find it, and
   * ends it. All copies of the user in a run share it.
   */
  basedOn?: Map<string, ReadVersion>
}

/** A membership that is to end by itself, from when it is written to a target. */
export interface TimedGroup {
  readonly name: string
  readonly expiry: Expiry
}

/** The request map: what the caller passed and tasks left for each other. Rendered by `$key$`. */
export type RequestMap = Map<string, unknown>

export interface TaskContext {
  readonly user: WorkflowUser
  readonly request: RequestMap
  readonly workflow: { readonly id: string; readonly name: string }
  readonly requestor: string
  readonly who: RunIdentities
  /** The caller, where another user than the requestor submitted the request. */
  readonly caller?: string
  /** Present where no task may make the user another one. The engine enforces it; tasks need not look. */
  readonly bound?: BoundSubject
  readonly log: Logger
  /** What the task waited for; absent when it is run for the first time. */
  readonly signal?: TaskSignal
  readonly effects: StepEffects
  /** What a target call of this step is made with; the audit rows name this target. */
  forTarget(name: string): TargetRequest
}

/** What a task gets for a preview. Its actions have no effect: user and request are copies, and effects are only shown. */
export interface PreviewContext extends TaskContext {
  /** Reads come from the real target; writes are shown, and visible to later reads of the same preview only. */
  target(name: string): Target
  readonly directory: Pick<Directory, 'search' | 'entry'>
}

/** What the engine does next. A task says it; it does not run its subtasks itself, so that a run can be resumed. */
export type TaskOutcome =
  | { readonly kind: 'next' }
  /** Nothing more of this workflow runs. */
  | { readonly kind: 'stop' }
  /** Subtasks, on the same user, or on a copy that is dropped afterwards. */
  | {
      readonly kind: 'branch'
      readonly branch: 'onSuccess' | 'onFailure'
      readonly user?: WorkflowUser
      /** Nothing runs after the subtasks, neither of this workflow nor of those that called it. */
      readonly last?: boolean
    }
  /** Another workflow's tasks, on the same user and request. */
  | { readonly kind: 'call'; readonly workflow: string }
  /** The run is put down. The same task is run again when the decision, or the time, has come, with `signal`. */
  | { readonly kind: 'wait'; readonly approval: ApprovalRequest }
  | { readonly kind: 'wait'; readonly until: Date }

/** What a task waited for. */
export type TaskSignal = ApprovalDecision | { readonly kind: 'time' }

export const next: TaskOutcome = { kind: 'next' }
export const stop: TaskOutcome = { kind: 'stop' }

export interface WorkflowTask extends Closable {
  run(context: TaskContext): Promise<TaskOutcome> | TaskOutcome
  /**
   * Does to the context what `run` would do, and nothing beyond it, so that approvers see what would follow. Absent for a
   * task of which that cannot be said; see `onContext` and its kin.
   */
  preview?(context: PreviewContext): Promise<TaskOutcome> | TaskOutcome
}

/** What a task may use of Gatehouse. */
export interface TaskHost extends LookupHost {
  readonly targets: TaskTargets
  readonly grants: GrantAccess
}

export interface TaskTargets extends TargetSource {
  /** The owners of the target's account; empty if no directory insert is known to show the account. */
  ownersOf?(name: string, userID: string): Promise<readonly Identity[]>
  /** The target's `targetAttributes`, ready to use; undefined when everything passes unmapped. */
  mapping?(name: string): Mapping | undefined
}

/** A task of a workflow definition, parsed with its subtasks. */
export interface PreparedTask {
  readonly taskType: string
  /** Which one it is, where the task type alone does not say so. */
  readonly name?: string
  /** Where it stands in its document. */
  readonly path: Path
  readonly flow: TaskFlow
  /** Workflows it calls, for the check that none calls itself. */
  readonly calls: readonly string[]
  readonly onSuccess: readonly PreparedTask[]
  readonly onFailure: readonly PreparedTask[]
  /** How long one execution of it may take, where the task says so. */
  readonly timeoutMillis?: number
  create(host: TaskHost): Promise<WorkflowTask>
}

/** What a task's parse is given beside its own fields. */
export interface TaskParseContext extends ParseContext {
  readonly customTasks: { find(className: string): CustomTaskModule | undefined; unknown(name: string): string }
  /** `params` of a customTask as Params, whichever form it is written in. */
  params(value: unknown, path: Path, issues: Issues): Params
}

/** A built-in task type, known by its `taskType` word. The engine parses subtasks; the module parses its own fields. */
export interface TaskModule {
  readonly taskType: string
  /** Fields of its own, beside taskType, onSuccess and onFailure, with a sentence each for the reference page. */
  readonly fields: Readonly<Record<string, { readonly about: string; readonly required: boolean }>>
  readonly branches: boolean
  prepare(
    fields: Readonly<Record<string, unknown>>,
    path: Path,
    issues: Issues,
    context: TaskParseContext,
  ): Pick<PreparedTask, 'name' | 'flow' | 'calls' | 'create'>
}

export interface CustomTaskModule {
  readonly className: string
  readonly aliases: readonly string[]
  readonly parameters: ParameterTable
  prepare(params: Params, issues: Issues, context: ParseContext): Pick<PreparedTask, 'flow' | 'create'>
}

export interface CustomTaskDefinition<C> {
  readonly className: string
  readonly aliases?: readonly string[]
  readonly parameters: ParameterTable
  /** Pure: no I/O, no clock. */
  parse(params: Params, issues: Issues, context: ParseContext): C
  flow(config: C): TaskFlow
  create(config: C, host: TaskHost): WorkflowTask | Promise<WorkflowTask>
}

export function defineCustomTask<C>(definition: CustomTaskDefinition<C>): CustomTaskModule {
  const { className, parameters } = definition
  return {
    className,
    aliases: definition.aliases ?? [],
    parameters,
    prepare: (params, issues, context) => {
      const config = definition.parse(params, issues, context)
      return { flow: definition.flow(config), create: async (host) => definition.create(config, host) }
    },
  }
}

/** Access that a step gave and that expires. */
export type GrantedAccess = Omit<NewGrant, 'id' | 'run'>

/** A password that a step sets at a target. */
export interface SetPassword {
  readonly target: string
  /** The logins that the account's owner may have signed in with: at the target, and in the workflow. */
  readonly logins: readonly string[]
  /** Who the account's owners are; empty where no directory insert is known to show the account. */
  readonly owners: readonly Identity[]
}

/** A password that is about to be written. Whoever says neither does not know what came of it. */
export interface PasswordWrite {
  written(): void
  /** The target has not taken it. */
  refused(): Promise<void>
}

/** What is to follow from a step. It is committed with the step's end, or not at all. */
export interface StepEffects {
  mail(mail: StepMail): void
  grant(access: GrantedAccess): void
  /**
   * To be called before a password is written. Once it is, the sessions of the account's owner end with the step, except
   * the one that requested the run. They end, too, where no one learns whether it was written: the process was killed, or
   * the target did not answer. Sessions are found by identity, or by login where no owner is named.
   */
  beginPassword(password: SetPassword): Promise<PasswordWrite>
  /** Another run, on its own from then on. */
  start(call: WorkflowCall): void
}
