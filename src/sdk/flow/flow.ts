import type { Dn } from '#identity/dn.ts'
import type { Path } from '#kernel/issues.ts'

/** An attribute name at a place in the module's document. */
export interface AttributePlace {
  readonly attribute: string
  readonly path: Path
}

/** Where a workflow writes a value: the target, and the name there. */
export interface AttributeWrite {
  readonly target: string
  readonly attribute: string
}

/** What a workflow does with its initial attributes and password, as far as its tasks show. */
export interface WorkflowWrites {
  /** Empty if no task uses the attribute; `unknown` if a task uses it in a way that can't be known beforehand. */
  ofUser(attribute: string): readonly AttributeWrite[] | 'unknown'
  /** The same for a workflow that creates or changes a group. */
  ofGroup(attribute: string): readonly AttributeWrite[] | 'unknown'
  /** The targets at which it sets the password. */
  readonly passwords: readonly string[] | 'unknown'
  /** More than one of its steps may change a system, so a run that fails may have done a part. */
  readonly severalTimes: boolean
}

/** How a filter passes attributes into its workflows and reads them back from a target. */
export interface AttributeFlow {
  /** The attributes with which the workflows start. */
  readonly produces: readonly AttributePlace[]
  readonly workflows: readonly string[]
  /** What is read back from `target`; undefined for the virtual directory. */
  readonly reads: readonly AttributePlace[]
  readonly target: string | undefined
  /** The place that names the target, which must have lookups. */
  readonly targetAt?: Path
  /** Where the users are that the filter shows, if it shows any. */
  readonly users?:
    | { readonly kind: 'target'; readonly name: string }
    | { readonly kind: 'directory'; readonly base: Dn; readonly login: string }
  /** Mapping lines show other attributes of them than are stored there. */
  readonly mapsUsers?: boolean
  /** Attributes that always exist, such as the login. */
  readonly given: readonly string[]
  /** The place of a built-in mapping of many attributes, whose problems are reported as one. */
  readonly builtInAt?: Path
  /** The same of other resources that the filter serves. */
  readonly others?: readonly AttributeFlow[]
  /** Its problems, given what workflows write, and which attributes a target can store, in lower case, if that is known. */
  check?(
    writesOf: (workflow: string) => WorkflowWrites,
    storesOf: (target: string) => ReadonlySet<string> | undefined,
  ): readonly FlowProblem[]
}

/** A problem of a flow: a warning, unless it is an error. */
export interface FlowProblem {
  readonly path: Path
  readonly message: string
  readonly isError?: boolean
}

/** Workflows that callers of a filter start with attributes, and maybe groups, of their own choice. */
export interface CallableWorkflows {
  readonly workflows: readonly string[]
  readonly path: Path
  /** Callers may name groups. */
  readonly groups: boolean
  /** Callers may act for themselves. */
  readonly forThemselves: boolean
  /** Callers without a directory entry may name any user, group and requester. */
  readonly trustsPrograms: boolean
}

/** The initial attributes that each written attribute comes from. */
export type AttributeSources = ReadonlyMap<string, readonly string[] | 'any'>

/** How one workflow task moves attributes, and whether it changes anything outside its run. */
export interface TaskFlow {
  readonly reads: readonly AttributePlace[]
  readonly produces: readonly AttributePlace[]
  /** The task's subtasks see only what it produces. */
  readonly dropsOthers: boolean
  /** The task may add unknown attributes, so nothing after it counts as missing. */
  readonly opaque: boolean
  /**
   * The attributes from which the task makes the login or finds an account; none if absent, `any` if a mapper may
   * read any attribute.
   */
  readonly loginReads?: readonly string[] | 'any'
  /** The sources of the task's attributes, by their names in lower case; `any` if a mapper may read any attribute. */
  readonly sources?: AttributeSources
  /** The task runs code of the configuration, which may set the login, groups and attributes to anything. */
  readonly runsCode?: boolean
  /** The task may set attributes that logins are made from to values of the caller, so the engine checks the result. */
  readonly setsValues?: boolean
  /** Workflows that the task starts as separate runs; `any` if their names are not known beforehand. */
  readonly starts?: readonly string[] | 'any'
  /** Attributes that the task uses if they're present, besides `reads`; `any` if that can't be known beforehand. */
  readonly mayRead?: readonly string[] | 'any'
  /** From here on the user may get any group: the caller who starts the run names it in a parameter or an attribute. */
  readonly takesAnyGroup?: boolean
  /** The groups whose members decide, as far as their names are constants. */
  readonly approverGroups?: readonly string[]
  /** The task refuses a decision without a comment. */
  readonly commentRequired?: boolean
  /** Attributes and memberships written to a target; an undefined list means all. */
  readonly provisions?: {
    readonly target: string
    readonly attributes: readonly AttributePlace[] | undefined
    readonly groups?: readonly string[] | undefined
    /** The password of the run is set as well. */
    readonly password?: boolean
  }
  /** The part of the directory from which the task reads the user again, and a login with it. */
  readonly reloadsFrom?: Dn
  /** The task itself may change a target or another system; mails and runs that it starts are committed with its step. */
  readonly writes?: boolean
  /** The attributes of the workflow's user that are written to a group; an undefined list means all. */
  readonly writesGroup?: { readonly target: string; readonly attributes: readonly string[] | undefined }
}

/** The flow of a task that neither reads nor writes attributes. */
export const noFlow: TaskFlow = { reads: [], produces: [], dropsOthers: false, opaque: false }

/** The flow of a task that changes a system and moves no attributes. */
export const writingFlow: TaskFlow = { ...noFlow, writes: true }
