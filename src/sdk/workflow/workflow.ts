import type { NamedGroup } from '#identity/group.ts'
import type { RunIdentities } from '#identity/identity.ts'
import type { User } from '#identity/user.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import type { AttributeWrite } from '#sdk/flow/flow.ts'
import type { NewAccount } from '#sdk/target/new-account.ts'
import { expiryKey } from './expiry-offer.ts'
import type { RunHead } from './run-head.ts'

/** What a call says of its run: logins are those of authenticated users, never values that the caller chose. */
export interface CallHead extends Omit<RunHead, 'id' | 'definition' | 'subject' | 'who' | 'accessEnds'> {
  /** Default: the login of the call's user. */
  readonly subject?: string | undefined
  /** The identities of the users that it names by login. Users are compared by these; without them they are unknown. */
  readonly who?: RunIdentities | undefined
}

/** A call of a workflow for a subject. */
export interface WorkflowCall {
  readonly head: CallHead
  readonly user: User
  /** Attributes to remove; a provision task that names no attributes clears them. */
  readonly cleared?: readonly string[]
  /** The user's groups are unknown here, so memberships stay unchanged unless a task loads or changes them. */
  readonly keepGroups?: boolean
  /** With `keepGroups`: memberships to add to and remove from those at the target. */
  readonly groupChanges?: GroupChanges
  /** Returns once the run is stored; otherwise once it ended, or had to wait. */
  readonly asynchronous?: boolean
  /** The new login; every provision task of the run renames the user at its target. */
  readonly newUserID?: string
  /**
   * The target from which the caller read the user. The first write to that target happens only while it still has
   * this version; otherwise the run is refused with VERSION_MISMATCH, and the caller may read and try again.
   */
  readonly basedOn?: ReadVersion
  /** The caller may act for this user only, so no task may replace it. */
  readonly bound?: BoundSubject | undefined
  /** The run creates accounts and never changes one that it did not create; see NewAccount. */
  readonly newAccount?: NewAccount
  /**
   * What the call changes, if its caller may repeat the change: a run that fails part way is found by it, and by its
   * subject, in `settle`.
   */
  readonly resource?: string
  /** Incidents that end once this run has completed, or has taken their place. */
  readonly replaces?: readonly UnfinishedChange[]
  /** Set by each task that sets passwords, once at each target; never logged, and stored only encrypted. */
  readonly password?: string | undefined
  /** The public id of the caller's session, which stays when the run sets the caller's own password. */
  readonly session?: string | undefined
  /** How many runs started one another before this one; beyond 16 none is started. */
  readonly depth?: number
  /** Store the run even if it ends within its call, so that it can be read later. */
  readonly kept?: boolean
  /** The request map. Engine keys in it are rejected. */
  readonly params: Readonly<Record<string, string>>
}

/** Memberships to add and to remove. */
export interface GroupChanges {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

/** What a run about one user must not change of the user. */
export interface BoundSubject {
  /** The attributes from which logins are made. */
  readonly attributes: readonly string[] | 'any'
}

/** The version of an entry that the caller read. */
export interface ReadVersion {
  readonly target: string
  /** Or `noVersion`, or `anyVersion`. */
  readonly version: string
  /** The user with this version there; default: the user of the run. */
  readonly userID?: string
  /** The group that the user will join or leave: it must still have this name then, or VERSION_MISMATCH. */
  readonly group?: NamedGroup
}

/** The version of a user who did not exist: the write must create the user, else it is refused with CONFLICT. */
export const noVersion = ''

/** Where the target has no versions: the user must exist, so that no write creates a user who was deleted since. */
export const anyVersion = '*'

/** The state of a run for its caller. */
export type RunStatus = 'completed' | 'waiting' | 'accepted'

/** The result of a call of a workflow. */
export interface WorkflowResult {
  readonly id: string
  /** `accepted`: stored for execution; `waiting`: stored, since it met an approval or a time. */
  readonly status: RunStatus
  /** How many changes the run made to targets. */
  readonly changes: number
  /** The attributes that targets reported as changed. A target may have filled one in again since. */
  readonly written?: readonly AttributeWrite[] | undefined
}

/** Starts workflows. */
export interface WorkflowStarter {
  /**
   * A synchronous call resolves when the last task ended, and rejects if one failed. Rejects with NOT_SUPPORTED for
   * an unknown workflow, which only an optional reference can name. `started` gets the id of a synchronous run
   * before its first task, so that a failed run can be named too.
   */
  run(call: WorkflowCall, started?: (id: string) => void): Promise<WorkflowResult>
}

/** A run that changed something and needs an administrator. */
export interface UnfinishedChange {
  readonly id: string
  readonly fence: number
  readonly resource: string
  readonly requester: string
  /** The attributes that it sets or clears; a run that replaces it writes them too. Undefined if no other run can replace it. */
  readonly written?: readonly string[]
  /** A target lacks its password, which is known to no other run, so a run that replaces it needs one of its own. */
  readonly setsPassword?: boolean | undefined
}

const engineKey = /^(?:approval[._]|unison[._](?!sendToSubject$)|workflow|tremolo_user_id$|com\.tremolosecurity\.)/i

/**
 * True for request keys that control the engine (approvals, execution, identity of the run). No input of a caller
 * may become one, so they are rejected where input or a task names a key. `unison.sendToSubject`, which only says
 * who gets mail, is a key like any other.
 */
export const isEngineKey = (key: string): boolean => engineKey.test(key) || isForbiddenKey(key)

/** True for request keys that no task may set: those of the engine, and the end of the access, which is set once for a run. */
export const isReadOnlyKey = (key: string): boolean => isEngineKey(key) || key === expiryKey

/** A call that may be repeated and gets the same response as the first time. */
export interface CallKey {
  /** Caller and workflow. Keys of different callers are independent. */
  readonly scope: string
  readonly key: string
  /** The hash of the request. */
  readonly bodyHash: string
}

/** The outcome of a call with an idempotency key. */
export type RunStart =
  | { readonly kind: 'started' | 'repeated'; readonly result: WorkflowResult }
  /** The first call has not been answered yet. */
  | { readonly kind: 'under-way'; readonly run: string }
  /** The key was used for another request. */
  | { readonly kind: 'other-body' }

/** Starts stored runs. */
export interface RunStarter {
  /** Stores the run and returns; a call with a key that was used before gets the first run. */
  start(call: WorkflowCall, key: CallKey): Promise<RunStart>
}
