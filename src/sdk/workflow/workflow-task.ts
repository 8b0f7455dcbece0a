import type { Attributes } from '#identity/attributes.ts'
import type { Directory, MemberDirectory } from '#identity/directory.ts'
import type { Identity } from '#identity/identity.ts'
import type { User } from '#identity/user.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import { noFlow, type TaskFlow } from '#sdk/flow/flow.ts'
import type { StepMail } from '#sdk/mail/mail.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import type { ModuleOf } from '#sdk/module/module.ts'
import { type ParameterTable, type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { Expiry } from '#sdk/target/expiry.ts'
import type { GroupMappings } from '#sdk/target/group-mappings.ts'
import type { LookupHost, Target, TargetRequest, TargetSource } from '#sdk/target/target.ts'
import type { GrantAccess } from '#sdk/workflow/grants.ts'
import type { BoundSubject, GroupChanges, ReadVersion, WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { ApprovalRequest, ApprovalSignal } from './approval-request.ts'
import type { NewGrant } from './grant.ts'
import type { RunHead } from './run-head.ts'
import type { ScriptSecrets } from './script-secrets.ts'

/** The user of a workflow. Tasks change it; nothing reaches a target before a provision task. */
export interface WorkflowUser extends User {
  userID: string
  attributes: Attributes
  groups: string[]
  /** Attributes that will have no value; attributes that a task set since then do not count. */
  cleared?: readonly string[] | undefined
  /** While true, `groups` is unknown: provisioning keeps memberships. A task that sets groups clears it. */
  keepGroups: boolean
  /** While `keepGroups` is true: memberships to add to and remove from those at the target. */
  groupChanges?: GroupChanges | undefined
  /** Temporary memberships of a provision task. */
  timedGroups?: readonly TimedGroup[]
  /** Set by the caller, removed after the last task that sets it at a target, and never logged. */
  password?: string | undefined
  /** The targets at which this run has set the password. */
  passwordTargets?: readonly string[]
  requestReason?: string | undefined
  /** The new login, at every target. */
  newUserID?: string | undefined
  /**
   * By target: the version at which the user was read. The first write to that target must find it, and removes it
   * here. All copies of the user in a run share it.
   */
  basedOn?: Map<string, ReadVersion> | undefined
}

/** A membership that expires, counted from its write to a target. */
export interface TimedGroup {
  readonly name: string
  readonly expiry: Expiry
}

/** The request map: what the caller passed and tasks stored for each other. Rendered by `$key$`. */
export type RequestMap = Map<string, unknown>

/** The run that a task belongs to, and what it may use of Gatehouse. */
export interface TaskContext {
  readonly user: WorkflowUser
  readonly request: RequestMap
  readonly run: RunHead
  /** Present if no task may replace the user. The engine enforces it; tasks need not check. */
  readonly bound?: BoundSubject | undefined
  readonly log: Logger
  /** The result of the task's wait; absent when it runs for the first time. */
  readonly signal?: TaskSignal | undefined
  readonly effects: StepEffects
  /** The options for calling a target in this step; the audit rows name this target. */
  forTarget(name: string): TargetRequest
}

/** The context of a preview. Its actions have no effect: user and request are copies, and effects are only shown. */
export interface PreviewContext extends TaskContext {
  /** Reads come from the real target; writes are shown, and visible to later reads of the same preview only. */
  target(name: string): Target
  readonly directory: Pick<Directory, 'search' | 'entry'>
}

/** What the engine does next. A task returns it and does not run its subtasks itself, so that a run can be resumed. */
export type TaskOutcome =
  | { readonly kind: 'next' }
  /** Nothing more of this workflow runs. */
  | { readonly kind: 'stop' }
  /** Subtasks, on the same user, or on a copy that is dropped afterwards. */
  | {
      readonly kind: 'branch'
      readonly branch: 'onSuccess' | 'onFailure'
      readonly user?: WorkflowUser
      /** Nothing runs after the subtasks, neither of this workflow nor of those that called it: the run was denied. */
      readonly end?: 'denied'
    }
  /** Another workflow's tasks, on the same request, and on the same user or another one that is dropped afterwards. */
  | {
      readonly kind: 'call'
      readonly workflow: string
      readonly user?: WorkflowUser
      /** The same task runs again after the called workflow. */
      readonly again?: boolean
    }
  /** The run waits. The same task runs again after the decision, or at the time, with `signal`. */
  | { readonly kind: 'wait'; readonly approval: ApprovalRequest }
  | { readonly kind: 'wait'; readonly until: Date }

/** The result of a wait. */
export type TaskSignal = ApprovalSignal | { readonly kind: 'time' }

/** The outcome of a task after which the next one runs. */
export const next: TaskOutcome = { kind: 'next' }
/** The outcome of a task that ends the workflow. */
export const stop: TaskOutcome = { kind: 'stop' }

/** A task of a workflow, ready to run. */
export interface WorkflowTask extends Closable {
  run(context: TaskContext): Promise<TaskOutcome> | TaskOutcome
  /**
   * Does to the context what `run` would do, and nothing else, so that approvers see what would follow. Absent for
   * a task without a preview; see `onContext` and similar.
   */
  preview?(context: PreviewContext): Promise<TaskOutcome> | TaskOutcome
}

/** What a task may use of Gatehouse. */
export interface TaskHost extends LookupHost {
  readonly directory: MemberDirectory
  readonly targets: TaskTargets
  readonly grants: GrantAccess
  readonly groupMappings: GroupMappings
  readonly scriptSecrets: ScriptSecrets
}

/** The targets by name, with the owners of their accounts and their mappings. */
export interface TaskTargets extends TargetSource {
  /** The owners of the target's account; empty if no directory insert is known to show the account. */
  ownersOf?(name: string, userID: string): Promise<readonly Identity[]>
  /** The target's `targetAttributes`, ready to use; undefined if everything passes unmapped. */
  mapping?(name: string): Mapping | undefined
}

/** A task of a workflow definition, parsed with its subtasks. */
export interface PreparedTask {
  readonly taskType: string
  /** Which one it is, if the task type does not identify it. */
  readonly name?: string
  /** Which one it is, for administrators: its `label`, `name`, `target` and `className`. */
  readonly details?: Readonly<Record<string, string>>
  /** Its place in its document. */
  readonly path: Path
  readonly flow: TaskFlow
  /** Workflows it calls, for the check that none calls itself. */
  readonly calls: readonly string[]
  readonly onSuccess: readonly PreparedTask[]
  readonly onFailure: readonly PreparedTask[]
  /** The maximum duration of one execution, if the task has one. */
  readonly timeoutMillis?: number | undefined
  create(host: TaskHost): Promise<WorkflowTask>
}

/** What a task's parse gets besides its own fields. */
export interface TaskParseContext extends ParseContext {
  readonly customTasks: { find(className: string): CustomTaskModule | undefined; unknown(name: string): string }
  /** `params` of a customTask as Params, in either form. */
  params(value: unknown, path: Path, issues: Issues): Params
}

/** A built-in task type, identified by its `taskType`. The engine parses subtasks; the module parses its own fields. */
export interface TaskModule {
  readonly taskType: string
  /** Its own fields, besides taskType, onSuccess and onFailure. */
  readonly fields: ParameterTable
  readonly branches: boolean
  prepare(
    fields: Readonly<Record<string, unknown>>,
    path: Path,
    issues: Issues,
    context: TaskParseContext,
  ): Pick<PreparedTask, 'name' | 'flow' | 'calls' | 'create'>
}

/** A kind of custom task, as the catalog lists it. */
export type CustomTaskModule = ModuleOf<Pick<PreparedTask, 'flow' | 'create'> & Partial<Pick<PreparedTask, 'calls'>>>

/** What a task's definition returns. Without a flow, the task touches no attribute. `H` is the host of its feature. */
export interface TaskPlan<H extends TaskHost = TaskHost> {
  readonly flow?: TaskFlow
  /** Workflows that it calls. */
  readonly calls?: readonly string[]
  create(host: H): WorkflowTask | Promise<WorkflowTask>
}

/** Where a custom task's parameters are, and where it reports problems. */
export interface CustomTaskPlaces {
  readonly params: Params
  readonly issues: Issues
  readonly context: ParseContext
  pathOf(name: string, index?: number): Path
}

interface CustomTaskDefinition<P extends ParameterTable, H extends TaskHost> {
  readonly className: string
  readonly aliases?: readonly string[]
  readonly parameters: P
  /** Pure: no I/O, no clock. A missing or invalid parameter is reported and has its fallback. */
  prepare(given: ParsedParameters<P>, places: CustomTaskPlaces): TaskPlan<H>
}

/** Defines a custom task: its parameters are read by its table before `prepare` gets them. */
export const defineCustomTask = <P extends ParameterTable, H extends TaskHost = TaskHost>(
  definition: CustomTaskDefinition<P, H>,
): CustomTaskModule => ({
  aliases: [],
  ...definition,
  prepare: (params, issues, context) => {
    const given = readParameters(definition.parameters, params, issues, context)
    const pathOf: CustomTaskPlaces['pathOf'] = (name, index) => params.pathOf(name, index)
    const plan = definition.prepare(given, { params, issues, context, pathOf })
    return { flow: plan.flow ?? noFlow, calls: plan.calls ?? [], create: async (host: H) => plan.create(host) }
  },
})

/** Access that a step granted and that expires. */
export type GrantedAccess = Omit<NewGrant, 'id' | 'run'>

/** A password that a step sets at a target. */
export interface SetPassword {
  readonly target: string
  /** The logins that the account's owner may have signed in with: at the target, and in the workflow. */
  readonly logins: readonly string[]
  /** The account's owners; empty if no directory insert is known to show the account. */
  readonly owners: readonly Identity[]
}

/** A password that is about to be written. Without either call the outcome is unknown. */
export interface PasswordWrite {
  written(): void
  /** The target did not accept it. */
  refused(): Promise<void>
}

/** The effects of a step. They are committed with the step's end, or not at all. */
export interface StepEffects {
  mail(mail: StepMail): void
  grant(access: GrantedAccess): void
  /**
   * Call it before writing a password. After the write, the sessions of the account's owner end with the step,
   * except the one that requested the run. They also end if the outcome is unknown: the process was killed, or the
   * target did not answer. Sessions are found by identity, or by login if no owner is named.
   */
  beginPassword(password: SetPassword): Promise<PasswordWrite>
  /** Another, independent run. */
  start(call: WorkflowCall): void
}
