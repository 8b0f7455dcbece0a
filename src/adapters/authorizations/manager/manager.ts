import type { DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { isLoginOnly, type UserRef } from '#identity/identity.ts'
import { defineAuthorization } from '#sdk/auth/authorization.ts'
import { findLogin } from '#sdk/login/own-login.ts'
import { flag, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import type { LookupHost } from '#sdk/target/target.ts'

const parameters = {
  numLevels: wholeNumber({
    about: "How far up the manager is: 1 is the user's manager, 2 the manager of that manager.",
    required: true,
    fallback: 1,
    min: 1,
    max: 10,
  }),
  managerID: text({ about: 'The attribute that names the manager of a user.', required: true }),
  managerIDIsDN: flag({
    about: '`"true"`: `managerID` holds the name of an entry in the directory. `"false"`: it holds a login (`uid`).',
  }),
  allowLowerManagers: flag({ about: '`"true"`: the managers between the user and that manager may decide, too.' }),
}

interface ManagerConfig {
  readonly numLevels: number
  readonly managerID: string
  readonly managerIDIsDN: boolean
  readonly allowLowerManagers: boolean
}

/**
 * Allows the manager of the user whom a request is about, by the directory and never by values of the request. Only
 * approvals know such a user: everywhere else the rule denies.
 */
export default defineAuthorization<ManagerConfig>({
  className: 'authorizations.Manager',
  aliases: ['com.tremolosecurity.provisioning.az.ManagerAuthorization'],
  ...withParameters(parameters),
  create: (config, { directory }) => ({
    async isAuthorized({ identity }, _params, about) {
      const managers = await managersOf(required(about), config, directory)
      return managers.some((manager) => manager.identity === identity)
    },
    async listPossibleApprovers(_params, about) {
      const managers = await managersOf(required(about), config, directory)
      return managers.map(({ dn }) => dn.toString())
    },
  }),
})

function required(about: UserRef | undefined): UserRef {
  if (about !== undefined) return about
  throw new Error('authorizations.Manager decides only in approvals, which are about a user')
}

type SearchedDirectory = Pick<LookupHost['directory'], 'search' | 'entry'>

/** The lowest first. Ends where an entry has no single manager, or one that was met before. */
async function managersOf(
  about: UserRef,
  config: ManagerConfig,
  directory: SearchedDirectory,
): Promise<readonly DirectoryEntry[]> {
  const { numLevels, allowLowerManagers } = config
  const path: DirectoryEntry[] = []
  let next = await subjectOf(about, directory)
  while (next !== undefined && path.length <= numLevels) {
    const { identity } = next
    if (path.some((met) => met.identity === identity)) break
    path.push(next)
    next = await managerOf(next, config, directory)
  }
  return allowLowerManagers ? path.slice(1) : path.slice(numLevels, numLevels + 1)
}

async function subjectOf(about: UserRef, directory: SearchedDirectory): Promise<DirectoryEntry | undefined> {
  if (!isLoginOnly(about.identity)) return await directory.entry(about.identity)
  const found = await findLogin(about.login, directory)
  return found.kind === 'entry' ? found.entry : undefined
}

const anything: Filter = { kind: 'present', attribute: 'objectClass' }

async function managerOf(
  { attributes }: DirectoryEntry,
  { managerID, managerIDIsDN }: ManagerConfig,
  directory: SearchedDirectory,
): Promise<DirectoryEntry | undefined> {
  const [named = '', second] = attributes.values(managerID)
  if (named === '' || second !== undefined) return undefined
  if (!managerIDIsDN) {
    const found = await findLogin(named, directory)
    return found.kind === 'entry' ? found.entry : undefined
  }
  const base = readName(named)
  if (base === undefined) return undefined
  const [entry] = await directory.search({ base, scope: 'base', filter: anything, limit: 1 })
  return entry
}

/** Undefined for a text that isn't a name, and for the root. */
function readName(written: string): Dn | undefined {
  try {
    const dn = Dn.parse(written)
    return dn.rdns.length === 0 ? undefined : dn
  } catch {
    return undefined
  }
}
