import type { NamedGroup } from '#identity/group.ts'
import type { RunIdentities } from '#identity/identity.ts'
import type { User } from '#identity/user.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import type { NewAccount } from '#sdk/target/new-account.ts'

export interface WorkflowCall {
  readonly name: string
  /** The login of the authenticated caller; never a value the caller chose. */
  readonly requestor: string
  /** The identities of the users that the call names by login. Users are compared by these; without them they are unknown. */
  readonly who?: RunIdentities
  readonly user: User
  /** Runs about the same subject happen one at a time, in the order they were asked for; the user's login when absent. */
  readonly subject?: string
  /** Attributes that the user had and is to have no more; a provision task that names no attributes clears them. */
  readonly cleared?: readonly string[]
  /** The user's groups are not known here, so memberships stay as they are unless a task loads or changes them. */
  readonly keepGroups?: boolean
  /** With `keepGroups`: memberships to add to and remove from those at the target. */
  readonly groupChanges?: GroupChanges
  readonly reason?: string
  /** Answered once the run is stored; otherwise once it ended, or had to wait. */
  readonly asynchronous?: boolean
  /** A run that is stored and has not ended by then fails, before its next task. */
  readonly deadline?: Date
  /** On whose behalf the requestor acts, or who called in the requestor's name; stands in the audit beside the requestor. */
  readonly caller?: string
  /** The login the user is to have from now on; every provision task of the run asks its target for it. */
  readonly newUserID?: string
  /**
   * What the caller read the user from. The first write to that target happens only while it still has this version;
   * otherwise the run is refused with VERSION_MISMATCH, and the caller may read and ask again.
   */
  readonly basedOn?: ReadVersion
  /** The caller was allowed to act for this user only, so no task may make it another. */
  readonly bound?: BoundSubject
  /** The run creates accounts and never changes one that it did not create; see NewAccount. */
  readonly newAccount?: NewAccount
  /** Set at a target by the first task that sets passwords; never logged or stored. */
  readonly password?: string
  /** The HTTP request that asked for it, as in the access log; it stands in the audit. */
  readonly requestId?: string
  /** The public id of the caller's session, which stays when the run sets the caller's own password. */
  readonly session?: string
  /** How many runs started one another before this one; beyond 16 none is started. */
  readonly depth?: number
  /** A run that ends within its call is stored all the same, so that it can be asked for later. */
  readonly kept?: boolean
  /** The request map. Engine keys in it are refused. */
  readonly params: Readonly<Record<string, string>>
}

/** Memberships to add and to remove. */
export interface GroupChanges {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

/** What a run that is about one user must not change about the user. */
export interface BoundSubject {
  /** The attributes that logins are made of. */
  readonly attributes: readonly string[] | 'any'
}

export interface ReadVersion {
  readonly target: string
  /** Or `noVersion`. */
  readonly version: string
  /** Whose version it is there; when absent, that of the user whom the run is about. */
  readonly userID?: string
  /** The group that the user is to join or leave: it must still have this name then, or VERSION_MISMATCH. */
  readonly group?: NamedGroup
}

/** Stands for the version of a user who was not there: the write must make the user, else it is refused with CONFLICT. */
export const noVersion = ''

export type RunStatus = 'completed' | 'waiting' | 'accepted'

export interface WorkflowResult {
  readonly id: string
  /** `accepted`: stored and to be executed; `waiting`: stored, since it met an approval or a time. */
  readonly status: RunStatus
  /** How many changes the run made to targets. */
  readonly changes: number
}

export interface WorkflowStarter {
  /**
   * A synchronous call settles when the last task ended, and rejects when one failed. Rejects with NOT_SUPPORTED when
   * there is no workflow of that name, which only an optional reference can lead to. `started` gets the id of a
   * synchronous run before its first task, so that a failed run can be named too.
   */
  run(call: WorkflowCall, started?: (id: string) => void): Promise<WorkflowResult>
}

const engineKey = /^(?:approval[._]|unison[._](?!sendToSubject$)|workflow|tremolo_user_id$|com\.tremolosecurity\.)/i

/**
 * True for request keys that steer the engine (approvals, execution, identity of the run). Nothing that comes from a
 * caller may become one, so they are refused wherever a key is named by input or by a task. `unison.sendToSubject`, which
 * only says who is mailed, is a key like any other.
 */
export const isEngineKey = (key: string): boolean => engineKey.test(key) || isForbiddenKey(key)
