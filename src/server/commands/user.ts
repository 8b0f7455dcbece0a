import { userInfo } from 'node:os'
import process from 'node:process'
import { formatIssue } from '#config/located-issue.ts'
import type { AuditEntry } from '#domain/audit.ts'
import type { EndedSession } from '#domain/session.ts'
import { insertIdentity } from '#engine/directory/virtual-directory.ts'
import { createKeySource } from '#engine/keys/key-source.ts'
import { AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { endedRows } from '#engine/session/session-end-audit.ts'
import type { Identity } from '#identity/identity.ts'
import type { UserChange } from '#identity/user-directory.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import type { Configuration, InsertConfig } from '#sdk/configuration.ts'
import { keepsPeople, type NewPerson, type PeopleInsert } from '#sdk/directory-insert.ts'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'
import { invitationWords, runInvitationAction } from '#server/commands/invite.ts'
import { loadOnce } from '#server/commands/load-once.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/open-database.ts'
import { type PasswordInput, readPassword } from '#server/commands/read-password.ts'
import { resetFactors } from '#server/commands/reset-factors.ts'
import { terminalLine, terminalWidth } from '#server/commands/terminal-line.ts'
import type { Storage } from '#storage/open.ts'
import type { ChangeClaim } from '#storage/password-change-store.ts'

const usage = `Usage: gatehouse user add LOGIN --config DIR [OPTIONS]
       gatehouse user passwd|remove LOGIN --config DIR [OPTIONS]
       gatehouse user list --config DIR [OPTIONS]
       gatehouse user invite EMAIL --config DIR [OPTIONS]
       gatehouse user invitations --config DIR [OPTIONS]
       gatehouse user resend-invitation|revoke-invitation ID --config DIR [OPTIONS]
       gatehouse user reset-factors DN [OPTIONS]

add     Add a user, with a password from standard input
passwd  Set a user's password, from standard input, and end their sessions
remove  Remove a user with their memberships and password, and end their sessions
list    Print the users, and who has a password
invite  Invite someone to a registration form; the gateway sends the mail
invitations, resend-invitation, revoke-invitation  Print invitations, send one again, and revoke one
reset-factors  Remove the second factors and recovery codes of the user with that DN

  --config DIR            the folder of YAML, or kubernetes:NAMESPACE, with a DirectoryInsert of class directory.Database
${databaseUsage}
  --insert NAME           which of several such inserts
  --attribute NAME=VALUE  add, invite: an attribute; may repeat
  --application NAME      invitations: the application with the form, where there are several
  --group NAME            add: a group, created if it does not exist; may repeat
  --no-password           add: without a password
  --by NAME               who does it, for the audit (the user of this system)

A password is the first line of standard input, or typed at the terminal; it is never an argument.`

const options = {
  ...databaseOptions,
  config: { type: 'string' },
  insert: { type: 'string' },
  application: { type: 'string' },
  attribute: { type: 'string', multiple: true },
  group: { type: 'string', multiple: true },
  'no-password': { type: 'boolean' },
  by: { type: 'string' },
} as const

const embedded = 'directory.Database'
const pageSize = 200
/** How long a password may take to be written before the outcome counts as unknown. */
const leaseMillis = 120_000

class WrongUsage extends Error {}

const read = (args: string[], io: CommandIo) =>
  readArguments(args, { usage, options, positionals: args[0] === 'list' || args[0] === 'invitations' ? 1 : 2 }, io)
type Values = Extract<ReturnType<typeof read>, { values: unknown }>['values']

/** What an action does to the people of an insert; the changes are for the audit. `begun` comes before a password is replaced. */
type Action = (people: PeopleInsert, io: CommandIo, begun: () => Promise<void>) => Promise<readonly UserChange[]>

/** `gatehouse user add|passwd|remove|list`, with passwords from the given input. */
export const userCommandReading =
  (input: PasswordInput): RunCommand =>
  async (args, io) => {
    const given = read(args, io)
    if ('exit' in given) return given.exit
    const { values, positionals } = given
    const [word = '', login = ''] = positionals
    try {
      if (invitationWords.includes(word)) return await invite(word, login, values, io)
      if (word === 'reset-factors') {
        await withDatabase(values, (storage) => resetFactors(login, values.by, storage, io))
        return 0
      }
      const action = readAction(word, login, values, input)
      if (values.config === undefined) throw new WrongUsage('--config is required')
      const configuration = await load(values.config, io)
      if (configuration === undefined) return 1
      const config = chooseInsert(configuration, values.insert)
      const work = async (storage: Storage): Promise<void> => {
        const people = await openPeople(config, configuration, storage, values.data)
        try {
          const requestor = values.by ?? `${userInfo().username} (command line)`
          const by = { requestor, workflow: { id: newId(), name: `gatehouse user ${word}` } }
          const cause = { login, target: config.name, by }
          // A user whose password changed, or who is removed, must log in again.
          const ended = word === 'passwd' || word === 'remove' ? await identityOf(login, people, config) : undefined
          if (word === 'passwd' && ended !== undefined) {
            return await replacePassword((begun) => action(people, io, begun), ended, cause, storage)
          }
          const rows = rowsOf(await action(people, io, async () => {}), cause, storage)
          if (rows.length > 0) await storage.audit.append(rows)
          if (ended !== undefined) await storage.sessions.deleteOfOwner(ended)
        } finally {
          await people.close?.()
        }
      }
      await withDatabase(values, work, word === 'add' ? 'make' : 'refuse')
      return 0
    } catch (error) {
      io.stderr(`gatehouse user: ${messageOf(error)}`)
      if (!(error instanceof WrongUsage)) return 1
      io.stderr(usage)
      return 2
    }
  }

async function invite(word: string, argument: string, values: Values, io: CommandIo): Promise<number> {
  if (values.config === undefined) throw new WrongUsage('--config is required')
  const attributes = readAttributes(values.attribute ?? [])
  const configuration = await load(values.config, io)
  if (configuration === undefined) return 1
  const { application, by } = values
  const action = { word, argument, application, by, attributes }
  await withDatabase(values, (storage) => runInvitationAction(action, configuration, storage, io))
  return 0
}

export const userCommand: RunCommand = (args, io) => userCommandReading(process.stdin)(args, io)

/** Undefined when the insert has no such user. */
async function identityOf(login: string, people: PeopleInsert, config: InsertConfig): Promise<Identity | undefined> {
  const filter = { kind: 'equal', attribute: 'uid', value: login } as const
  const { entries } = await people.search({ base: config.suffix, scope: 'sub', filter, limit: 1 })
  return entries[0] && insertIdentity(config.name, entries[0])
}

/** Usage is checked before anything is opened or read. */
function readAction(word: string, login: string, values: Values, input: PasswordInput): Action {
  const password = (io: CommandIo): Promise<string> => readPassword(input, io.stderr)
  switch (word) {
    case 'add': {
      const person = { login, attributes: readAttributes(values.attribute ?? []), groups: values.group ?? [] }
      return async (people, io) => {
        const added: NewPerson = {
          ...person,
          password: values['no-password'] === true ? undefined : await password(io),
        }
        return people.addPerson(added)
      }
    }
    case 'passwd':
      return async (people, io, begun) => {
        const written = await password(io)
        await begun()
        return people.setPassword(login, written)
      }
    case 'remove':
      return async (people) => {
        const changes = await people.removePerson(login)
        if (changes.length === 0) throw new Error(`there is nobody with the login "${login}"`)
        return changes
      }
    case 'list':
      return list
    default:
      throw new WrongUsage(`unknown action "${word}"`)
  }
}

async function list(people: PeopleInsert, io: CommandIo): Promise<readonly UserChange[]> {
  let after: string | undefined
  do {
    const page = await people.listPeople(pageSize, after)
    for (const { login, entry, hasPassword } of page.people) {
      io.stdout(terminalLine(`${login}  ${hasPassword ? 'password' : 'no password'}  ${entry.dn}`, terminalWidth()))
    }
    after = page.next
  } while (after !== undefined)
  return []
}

function readAttributes(texts: readonly string[]): Map<string, string[]> {
  const attributes = new Map<string, string[]>()
  for (const text of texts) {
    const end = text.indexOf('=')
    const name = text.slice(0, Math.max(end, 0))
    if (name === '' || isForbiddenKey(name)) throw new WrongUsage(`--attribute must be NAME=VALUE, not "${text}"`)
    attributes.set(name, [...(attributes.get(name) ?? []), text.slice(end + 1)])
  }
  return attributes
}

async function load(config: string, io: CommandIo): Promise<Configuration | undefined> {
  const scope = new Scope()
  try {
    const { configuration, issues } = (await loadOnce({ config }, false, scope)).loaded
    if (configuration === undefined) for (const issue of issues) io.stderr(formatIssue(issue))
    return configuration
  } finally {
    await scope.close()
  }
}

function chooseInsert({ inserts }: Configuration, name: string | undefined): InsertConfig {
  const kept = inserts.filter(({ insert }) => insert.className === embedded)
  const [found, another] = name === undefined ? kept : kept.filter((one) => one.name === name)
  if (found === undefined) {
    const wanted = name === undefined ? '' : ` named "${name}"`
    throw new Error(`the configuration has no DirectoryInsert of class ${embedded}${wanted}`)
  }
  if (another !== undefined) throw new WrongUsage(`--insert is needed: ${kept.map((one) => one.name).join(' or ')}`)
  return found
}

async function openPeople(
  { name, insert, suffix }: InsertConfig,
  { folder }: Configuration,
  storage: Storage,
  data: string,
): Promise<PeopleInsert> {
  const made = await insert.create({
    name,
    suffix,
    log: silentLogger,
    clock: systemClock,
    keys: createKeySource({ configuration: folder, data }),
    targets: {
      get: (wanted) => {
        throw new GatewayError('INTERNAL', `the target "${wanted}" is not open here`)
      },
    },
    openUserDirectory: async (wanted) => storage.userDirectory(wanted),
  })
  if (!keepsPeople(made)) throw new Error(`the DirectoryInsert "${name}" keeps no people`)
  return made
}

interface Cause {
  readonly login: string
  /** The insert. */
  readonly target: string
  readonly by: Pick<AuditEntry, 'requestor' | 'workflow'>
}

function rowsOf(
  changes: readonly UserChange[],
  { login, target, by }: Cause,
  { audit }: Storage,
): readonly AuditEntry[] {
  return new AuditTrail(by, audit).rowsOf({ time: systemClock(), subject: login, target }, changes)
}

/**
 * Ends the user's sessions and voids reset links and known devices with the commit that reports the change. If this process
 * dies after the write, the gateway ends the sessions.
 */
async function replacePassword(
  write: (begun: () => Promise<void>) => Promise<readonly UserChange[]>,
  owner: Identity,
  cause: Cause,
  storage: Storage,
): Promise<void> {
  const store = storage.passwordChanges
  let claim: ChangeClaim | undefined
  let changes: readonly UserChange[]
  try {
    changes = await write(async () => {
      claim = await store.begin({ id: newId(), form: '', owner, data: { login: cause.login } }, leaseMillis)
    })
  } catch (error) {
    // Otherwise it isn't known whether the password was written.
    if (claim !== undefined && error instanceof GatewayError && error.isRefusal)
      await store.release(claim, { audit: [] })
    throw error
  }
  if (claim === undefined) throw new GatewayError('INTERNAL', 'a password was replaced without a note')
  const ending = {
    owners: [owner],
    logins: [],
    audit: (ended: readonly EndedSession[]) => endedRows(ended, cause.by),
  }
  await store.finish(claim, { ending, audit: rowsOf(changes, cause, storage) })
}

/** What the store says is for the log; to whoever asked, its public words say more. */
function messageOf(error: unknown): string {
  if (error instanceof GatewayError && error.code === 'BAD_REQUEST') return error.publicText
  if (error instanceof GatewayError && error.code === 'CONFLICT') return 'there is somebody with this login already'
  return error instanceof Error ? error.message : String(error)
}
