import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { type Identity, isLoginOnly } from '#identity/identity.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isAnonymousLogin } from '#sdk/login/own-login.ts'
import type { Target, TargetRequest } from '#sdk/target/target.ts'
import type { TaskContext, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { lookupName, sameLogin } from '#sdk/workflow/workflow-user.ts'

/**
 * The user in a target, by the attribute that names it there. While a login changes, some targets know the user by the
 * old one and some by the new one, so both are tried.
 */
export async function findInTarget(
  target: Target,
  user: WorkflowUser,
  nameAttribute: string,
  attributes: readonly string[],
  request: TargetRequest,
): Promise<User | undefined> {
  const name = lookupName(user, nameAttribute)
  const found = await target.findUser(name, attributes, request)
  const other = otherLogin(user, name)
  return found !== undefined || other === undefined ? found : target.findUser(other, attributes, request)
}

function otherLogin({ userID, newUserID }: WorkflowUser, name: string): string | undefined {
  if (newUserID === undefined || sameLogin(userID, newUserID)) return undefined
  if (sameLogin(name, newUserID)) return userID
  return sameLogin(name, userID) ? newUserID : undefined
}

/** The user's entry in the directory, by its login or, if that is about to change, the new one. */
export async function findInDirectory(
  directory: Pick<Directory, 'search'>,
  base: Dn,
  nameAttribute: string,
  { userID, newUserID }: WorkflowUser,
  task: string,
): Promise<DirectoryEntry | undefined> {
  for (const login of newUserID === undefined ? [userID] : [userID, newUserID]) {
    const filter = { kind: 'equal', attribute: nameAttribute, value: login } as const
    const [entry, another] = await directory.search({ base, scope: 'sub', filter, limit: 2 })
    if (another !== undefined) {
      throw new GatewayError('WORKFLOW_FAILED', `${task}: "${login}" appears more than once in the directory`)
    }
    if (entry !== undefined) return entry
  }
  return undefined
}

export const findRequester = (
  { run: { requester, who } }: Pick<TaskContext, 'run'>,
  directory: Pick<Directory, 'search' | 'entry'>,
): Promise<DirectoryEntry | undefined> => findUser(requester, who.requester, directory)

/** The user's entry: by identity, or, if only a login is known, the only entry that has it. */
export async function findUser(
  login: string,
  identity: Identity | undefined,
  directory: Pick<Directory, 'search' | 'entry'>,
): Promise<DirectoryEntry | undefined> {
  if (identity !== undefined && !isLoginOnly(identity)) return directory.entry(identity)
  const filter = { kind: 'equal', attribute: 'uid', value: login } as const
  const [entry, another] = await directory.search({ base: new Dn([]), scope: 'sub', filter, limit: 2 })
  return another === undefined ? entry : undefined
}

/**
 * Whether the requester is the subject of the run; by login only if an identity is not known. A visitor who did not sign
 * in speaks for no one else.
 */
export const isAboutRequester = ({ run: { requester, who }, user }: Pick<TaskContext, 'run' | 'user'>): boolean =>
  isAnonymousLogin(requester) ||
  (who.requester === undefined || who.subject === undefined || isLoginOnly(who.requester) || isLoginOnly(who.subject)
    ? sameLogin(requester, user.userID)
    : who.requester === who.subject)
