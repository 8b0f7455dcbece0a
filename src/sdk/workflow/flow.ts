import type { Path } from '#kernel/issues.ts'

/** An attribute named at a place in the same document as the module that names it. */
export interface AttributePlace {
  readonly attribute: string
  readonly path: Path
}

/** Where a workflow writes a value: the target, and the name that the target is given. */
export interface AttributeWrite {
  readonly target: string
  readonly attribute: string
}

/** What a workflow does with the attributes and the password that it's started with, as far as its tasks show. */
export interface WorkflowWrites {
  /** Empty when no task uses the attribute; `unknown` when a task uses it in a way that can't be known beforehand. */
  ofUser(attribute: string): readonly AttributeWrite[] | 'unknown'
  /** The same for a workflow that creates or changes a group. */
  ofGroup(attribute: string): readonly AttributeWrite[] | 'unknown'
  /** The targets at which it sets the password. */
  readonly passwords: readonly string[] | 'unknown'
}

/** How a filter moves attributes into its workflows and out of a target again. */
export interface AttributeFlow {
  /** What the workflows are started with. */
  readonly produces: readonly AttributePlace[]
  readonly workflows: readonly string[]
  /** What is read back from `target`; undefined for the virtual directory. */
  readonly reads: readonly AttributePlace[]
  readonly target: string | undefined
  /** Where the target is named; it must be able to tell who it holds. */
  readonly targetAt?: Path
  /** Attributes that are always there, such as the login. */
  readonly given: readonly string[]
  /** Where a built-in mapping of many attributes is asked for; what is wrong with it is told in one piece. */
  readonly builtInAt?: Path
  /** What is wrong with it, given what workflows write. */
  check?(writesOf: (workflow: string) => WorkflowWrites): readonly { readonly path: Path; readonly message: string }[]
}

/** Workflows that callers of a filter start with attributes, and maybe groups, of their own choice. */
export interface CallableWorkflows {
  readonly workflows: readonly string[]
  readonly path: Path
  /** Callers may name groups. */
  readonly groups: boolean
  /** Callers may act for themselves. */
  readonly forThemselves: boolean
}

export type AttributeSources = ReadonlyMap<string, readonly string[] | 'any'>

/** How one workflow task moves attributes. */
export interface TaskFlow {
  readonly reads: readonly AttributePlace[]
  readonly produces: readonly AttributePlace[]
  /** The task's subtasks see only what it produces. */
  readonly dropsOthers: boolean
  /** The task may add attributes that cannot be told beforehand, so nothing after it can be called missing. */
  readonly opaque: boolean
  /** The attributes that the task makes the login of or finds an account by; none when absent, `any` where a mapper may read anything. */
  readonly loginReads?: readonly string[] | 'any'
  /** What the task makes attributes of, by their names in lower case; `any` where a mapper may read anything. */
  readonly sources?: AttributeSources
  /** The task runs code of the configuration, which may set the login, groups and attributes to anything. */
  readonly runsCode?: boolean
  /** The task may set attributes that logins are made of to values the caller sent, so the engine checks what it did. */
  readonly setsValues?: boolean
  /** Workflows that the task starts as runs of their own; `any` where their names are not known beforehand. */
  readonly starts?: readonly string[] | 'any'
  /** Attributes that the task uses where they're present, beside `reads`; `any` where that can't be known beforehand. */
  readonly mayRead?: readonly string[] | 'any'
  /** From here on the user may be given any group: the caller who starts the run names it in a parameter or an attribute. */
  readonly takesAnyGroup?: boolean
  /** Attributes and memberships written to a target; an undefined list means "all there are". */
  readonly provisions?: {
    readonly target: string
    readonly attributes: readonly AttributePlace[] | undefined
    readonly groups?: readonly string[] | undefined
    /** The password that the run was started with is set as well. */
    readonly password?: boolean
  }
  /** The attributes of the workflow's user that are written to a group; an undefined list means "all there are". */
  readonly writesGroup?: { readonly target: string; readonly attributes: readonly string[] | undefined }
}

export const noFlow: TaskFlow = { reads: [], produces: [], dropsOthers: false, opaque: false }
