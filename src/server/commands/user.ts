import process from 'node:process'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { formatIssue } from '#config/located-issue.ts'
import type { AuditEntry } from '#domain/audit.ts'
import type { EndedSession } from '#domain/session.ts'
import { insertIdentity } from '#engine/directory/virtual-directory.ts'
import { AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { nameKey } from '#engine/second-factors.ts'
import { endedRows } from '#engine/session/session-end-audit.ts'
import { Dn } from '#identity/dn.ts'
import type { Identity } from '#identity/identity.ts'
import type { UserChange } from '#identity/user-directory.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import { keepsPeople, type NewPerson, type PeopleInsert } from '#sdk/directory/directory-insert.ts'
import type { Configuration, InsertConfig } from '#sdk/module/configuration.ts'
import type { CommandIo, RunCommand } from '#server/commands/command-line.ts'
import {
  messageOf,
  operatorName,
  readArguments,
  required,
  runAction,
  terminalLine,
  terminalWidth,
  unknownAction,
  WrongUsage,
} from '#server/commands/command-line.ts'
import { configUsage, databaseOptions, databaseUsage, loadOnce, withDatabase } from '#server/commands/installation.ts'
import { invitationWords, runInvitationAction } from '#server/commands/user-invitations.ts'
import type { Storage } from '#storage/open.ts'
import type { ChangeClaim } from '#storage/password-change-store.ts'

const usage = `Manage users of the embedded directory, invitations and second factors. All changes are in the audit.

Usage:
  gatehouse user add LOGIN --config SOURCE [options]
  gatehouse user passwd LOGIN --config SOURCE [options]
  gatehouse user remove LOGIN --config SOURCE [options]
  gatehouse user list --config SOURCE [options]
  gatehouse user invite EMAIL --config SOURCE [options]
  gatehouse user invitations --config SOURCE [options]
  gatehouse user resend-invitation ID --config SOURCE [options]
  gatehouse user revoke-invitation ID --config SOURCE [options]
  gatehouse user reset-factors DN [options]

Actions:
  add                Add a user
  passwd             Set the password of a user and end their sessions
  remove             Remove a user and end their sessions
  list               List users, and whether they have a password
  invite             Invite someone to a registration form; the gateway sends the mail
  invitations        List invitations
  resend-invitation  Send an invitation again, with a new link
  revoke-invitation  Revoke an invitation
  reset-factors      Remove the second factors and recovery codes of a user

Options:
${configUsage}
${databaseUsage}
  --insert NAME            DirectoryInsert of class directory.Database, if there are several
  --attribute NAME=VALUE   add, invite: an attribute; can be repeated
  --group NAME             add: a group, created if it does not exist; can be repeated
  --no-password            add: do not set a password
  --application NAME       Application with the registration form, if there are several
  --by NAME                Name of the operator, for the audit (default the system user)

add and passwd read the password from the terminal, or from the first line of standard input.`

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
/** Time to write a password; after that, the outcome is unknown. */
const leaseMillis = 120_000

const read = (args: string[], io: CommandIo) =>
  readArguments(
    args,
    { command: 'user', usage, options, positionals: args[0] === 'list' || args[0] === 'invitations' ? 1 : 2 },
    io,
  )
type Values = Extract<ReturnType<typeof read>, { values: unknown }>['values']

/** Changes the users of an insert and returns the changes for the audit. Calls `begun` before it replaces a password. */
type Action = (people: PeopleInsert, io: CommandIo, begun: () => Promise<void>) => Promise<readonly UserChange[]>

/** Reads passwords from the given input. */
export const userCommandReading =
  (input: PasswordInput): RunCommand =>
  async (args, io) => {
    const given = read(args, io)
    if ('exit' in given) return given.exit
    const { values, positionals } = given
    const [word = '', argument = ''] = positionals
    const run = async (): Promise<number> => {
      if (invitationWords.includes(word)) return invite(word, argument, values, io)
      if (word === 'reset-factors') {
        await withDatabase(values, (storage) => resetFactors(argument, operatorName(values.by), storage, io))
        return 0
      }
      return change(word, argument, values, readAction(word, argument, values, input), io)
    }
    return runAction('user', io, run, describe)
  }

async function change(word: string, login: string, values: Values, action: Action, io: CommandIo): Promise<number> {
  const configuration = await load(required(values.config, 'config'), io)
  if (configuration === undefined) return 1
  const config = chooseInsert(configuration, values.insert)
  const work = async (storage: Storage): Promise<void> => {
    const people = await openPeople(config, storage)
    try {
      const by = { requestor: operatorName(values.by), workflow: { id: newId(), name: `gatehouse user ${word}` } }
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
  await withDatabase(values, work, word === 'add' ? 'create' : 'refuse')
  return 0
}

async function invite(word: string, argument: string, values: Values, io: CommandIo): Promise<number> {
  const config = required(values.config, 'config')
  const attributes = readAttributes(values.attribute ?? [])
  const configuration = await load(config, io)
  if (configuration === undefined) return 1
  const { application, by } = values
  const action = { word, argument, application, by, attributes }
  await withDatabase(values, (storage) => runInvitationAction(action, configuration, storage, io))
  return 0
}

export const userCommand: RunCommand = (args, io) => userCommandReading(process.stdin)(args, io)

/** Undefined if the insert has no such user. */
async function identityOf(login: string, people: PeopleInsert, config: InsertConfig): Promise<Identity | undefined> {
  const filter = { kind: 'equal', attribute: 'uid', value: login } as const
  const { entries } = await people.search({ base: config.suffix, scope: 'sub', filter, limit: 1 })
  return entries[0] && insertIdentity(config.name, entries[0])
}

/** Checks the options before anything is opened or read. */
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
        if (changes.length === 0) throw new Error(`there is no user with the login "${login}"`)
        return changes
      }
    case 'list':
      return list
    default:
      return unknownAction(word, ['add', 'passwd', 'remove', 'list', ...invitationWords, 'reset-factors'])
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
  if (another !== undefined) throw new WrongUsage(`--insert is required: ${kept.map((one) => one.name).join(' or ')}`)
  return found
}

async function openPeople({ name, insert, suffix }: InsertConfig, storage: Storage): Promise<PeopleInsert> {
  const made = await insert.create({
    name,
    suffix,
    log: silentLogger,
    clock: systemClock,
    javaScript: () => undefined,
    targets: {
      get: (wanted) => {
        throw new GatewayError('INTERNAL', `the target "${wanted}" is not open here`)
      },
    },
    openUserDirectory: async (wanted) => storage.userDirectory(wanted),
  })
  if (!keepsPeople(made)) throw new Error(`the DirectoryInsert "${name}" does not store users`)
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
    // Otherwise it is unknown whether the password was written.
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

function describe(error: unknown): string {
  if (error instanceof GatewayError && error.code === 'BAD_REQUEST') return error.publicText
  if (error instanceof GatewayError && error.code === 'CONFLICT') return 'a user with this login already exists'
  return messageOf(error)
}

/** Works for users of any directory. Throws an Error for an invalid DN, and for a DN without second factors. */
export async function resetFactors(
  written: string,
  requestor: string,
  { secondFactors }: Pick<Storage, 'secondFactors'>,
  io: CommandIo,
): Promise<void> {
  const dn = Dn.parse(written)
  const subject = dn.rdns[0]?.[0]?.value ?? written
  const removed = await secondFactors.removeAllOfName(nameKey({ dn }), [
    {
      id: newId(),
      time: systemClock(),
      requestor,
      subject,
      workflow: { id: '', name: 'gatehouse user reset-factors' },
      target: 'gatehouse',
      kind: 'attribute',
      action: 'delete',
      attribute: 'second factor',
      value: 'all',
    },
  ])
  if (removed === 0) throw new Error(`no user with second factors has the DN "${dn}"`)
  io.stdout(`Removed ${removed} second factor${removed === 1 ? '' : 's'}`)
}

/** The source of a password. */
export type PasswordInput = NodeJS.ReadableStream & { readonly isTTY?: boolean }

/** Longer than any valid password. */
const maxBytes = 4096

/** The first line of the input. At a terminal, the operator types it twice, and it is not shown. */
async function readPassword(input: PasswordInput, prompt: (line: string) => void): Promise<string> {
  const password = input.isTTY === true ? await typedTwice(input, prompt) : await firstLine(input)
  if (password === '') throw new Error('no password on standard input')
  return password
}

async function typedTwice(input: PasswordInput, prompt: (line: string) => void): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input, output: silent, terminal: true })
  const ask = (question: string): Promise<string> => {
    prompt(question)
    return new Promise((resolve, reject) => {
      terminal.once('close', () => reject(new Error('no password was typed')))
      terminal.question('', resolve)
    })
  }
  try {
    const first = await ask('Password (not shown):')
    if ((await ask('Repeat the password:')) !== first) throw new Error('the two passwords differ')
    return first
  } finally {
    terminal.close()
  }
}

async function firstLine(input: PasswordInput): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of input) {
    const part = Buffer.from(chunk)
    chunks.push(part)
    bytes += part.length
    if (part.includes('\n')) break
    if (bytes > maxBytes) throw new Error('the password on standard input is too long')
  }
  const text = Buffer.concat(chunks).toString()
  return text.split(/\r?\n/, 1)[0] ?? ''
}
