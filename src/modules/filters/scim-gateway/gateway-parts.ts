import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { WorkflowStarter } from '#sdk/host.ts'
import type { Mapping } from '#sdk/mapping.ts'
import type { ReadVersion, WorkflowResult } from '#sdk/workflow.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { GroupView } from './group-view.ts'
import type { KeyedLock } from './keyed-lock.ts'
import type { Managers } from './managers.ts'
import { ChangePending } from './pending-change.ts'
import type { ScimCall } from './scim-call.ts'
import type { GatewayStorage } from './stored-schema.ts'
import type { UserView } from './user-view.ts'
import type { VisibleLookups } from './visible-lookups.ts'

/** What the endpoints of one gateway share. */
export interface GatewayParts {
  readonly config: GatewayConfig
  readonly lookups: VisibleLookups
  readonly storage: GatewayStorage
  readonly toInternal: Mapping
  readonly userView: UserView
  readonly managers: Managers
  readonly groupView: GroupView
  readonly workflows: WorkflowStarter
  readonly lock: KeyedLock
  readonly log: Logger
}

export interface WorkflowRequest {
  readonly name: string
  readonly user: User
  readonly params?: Readonly<Record<string, string>>
  readonly password?: string
  /** Attributes that the user is to have no more. */
  readonly cleared?: readonly string[]
  /** The login the user is to have from now on. */
  readonly newUserID?: string | undefined
  /** The change holds only while the target has this version. */
  readonly basedOn?: ReadVersion | undefined
  /** What it is about, where that is not its user. */
  readonly subject?: string
}

/**
 * Throws ChangePending for a run that has to wait. SCIM never rewrites memberships as a list, so a workflow keeps them
 * unless its own tasks change them.
 */
export async function runWorkflow(
  parts: GatewayParts,
  { exchange, notes }: ScimCall,
  request: WorkflowRequest,
): Promise<WorkflowResult> {
  const { name, user, params = {}, password, cleared = [], newUserID, basedOn, subject } = request
  const call = {
    name,
    user,
    params,
    requestor: exchange.subject.uid,
    who: { requestor: exchange.subject.identity },
    requestId: exchange.request.id,
    keepGroups: true,
    ...(exchange.session === undefined ? {} : { session: exchange.session.id }),
    ...(password === undefined ? {} : { password }),
    ...(cleared.length === 0 ? {} : { cleared }),
    ...(newUserID === undefined ? {} : { newUserID }),
    ...(basedOn === undefined ? {} : { basedOn }),
    ...(subject === undefined ? {} : { subject }),
  }
  let noted: string | undefined
  // Noted before it ends, so that the journal names a run that fails.
  const running = parts.workflows.run(call, (id) => {
    noted = id
    notes.workflows.push(id)
  })
  const result = await running.catch((error: unknown) => refused(parts, exchange.request.id, error))
  if (noted === undefined) notes.workflows.push(result.id)
  if (result.status !== 'completed') throw new ChangePending(result.id)
  return result
}

/** What a target says that it cannot hold is a value that the client sent, named as the client names it. */
function refused({ config, log }: GatewayParts, requestId: string, error: unknown): never {
  const isValue =
    error instanceof GatewayError &&
    error.code === 'BAD_REQUEST' &&
    (error.keyword === undefined || error.keyword === 'invalidValue')
  if (!isValue) throw error
  log.info('a target refused a value', { requestId, err: error })
  throw scimError('invalidValue', inClientWords(error.publicText, config.clientNames), { cause: error })
}

/** Targets name their own attributes, at the start of a text or behind "value of"; clients know SCIM's. */
function inClientWords(text: string, names: ReadonlyMap<string, string>): string {
  const internal =
    /^(?:"(?<quoted>[^"]+)"|The attribute (?<plain>[^"\s]+))|(?<before>value of )(?:the attribute )?"?(?<named>[^"\s]+)"?/
  return text.replace(internal, (...match) => {
    const { quoted, plain, before, named } = match.at(-1) as Partial<Record<string, string>>
    const known = names.get((quoted ?? plain ?? named ?? '').toLowerCase())
    return before === undefined
      ? (known ?? 'An attribute of the account')
      : `${before}${known ?? 'an attribute of the account'}`
  })
}
