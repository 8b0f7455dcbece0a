import process from 'node:process'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import type { CommandIo, CommandOutput, RunCommand } from '#cli/command-line/command-line.ts'
import {
  defineCommand,
  fitted,
  listItems,
  messageOf,
  operatorName,
  printLines,
  readPairs,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { withConfiguration, withDatabase } from '#cli/command-line/installation.ts'
import { configOption, databaseOptions, outputOption } from '#cli/command-line/options.ts'
import type { Configuration, InsertConfig } from '#config/configuration/configuration.ts'
import { insertIdentity } from '#directory/virtual-directory.ts'
import { nameKey } from '#features/account/second-factors/second-factors.ts'
import type { EntryChange } from '#identity/account-store.ts'
import { Dn } from '#identity/dn.ts'
import type { Identity } from '#identity/identity.ts'
import { loginProblem } from '#identity/login-name.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { EndedSession } from '#requests/sessions/session.ts'
import { endedRows } from '#requests/sessions/session-end-audit.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { keepsPeople, type PeopleInsert } from '#sdk/directory/directory-insert.ts'
import type { Storage } from '#server/composition/stores.ts'
import { AuditTrail } from '#workflows/steps/audit-trail.ts'
import { type InvitationAction, runInvitationAction } from './user-invitations.ts'

const options = {
  ...configOption,
  ...databaseOptions,
  insert: { value: 'NAME', about: 'DirectoryInsert of class directory.Database, if there are several' },
  attribute: { value: 'NAME=VALUE', multiple: true, about: 'add, invite: an attribute; can be repeated' },
  group: { value: 'NAME', multiple: true, about: 'add: a group, created if it does not exist; can be repeated' },
  'no-password': { about: 'add: do not set a password' },
  application: { value: 'NAME', about: 'Application with the registration form, if there are several' },
  by: { value: 'NAME', about: 'Name of the operator, for the audit (default the system user)' },
  ...outputOption,
} as const
type UserValues = Values<typeof options>

const embedded = 'directory.Database'
/** Time to write a password; after that, the outcome is unknown. */
const leaseMillis = 120_000

/** Reads passwords from the given input. */
export const userCommandReading = (input: PasswordInput): RunCommand =>
  defineCommand({
    name: 'user',
    about: 'Manage users of the embedded directory, invitations and second factors. All changes are in the audit.',
    options,
    actions: {
      add: {
        usage: 'LOGIN --config SOURCE [options]',
        arguments: ['LOGIN'],
        about: 'Add a user',
        run: (values, [login = ''], io) => add(values, login, input, io),
      },
      passwd: {
        usage: 'LOGIN --config SOURCE [options]',
        arguments: ['LOGIN'],
        about: 'Set the password of a user and end their sessions',
        run: (values, [login = ''], io) => setPassword(values, login, input, io),
      },
      remove: {
        usage: 'LOGIN --config SOURCE [options]',
        arguments: ['LOGIN'],
        about: 'Remove a user and end their sessions',
        run: remove,
      },
      list: { usage: '--config SOURCE [options]', about: 'List users, and whether they have a password', run: list },
      invite: {
        usage: 'EMAIL --config SOURCE [options]',
        arguments: ['EMAIL'],
        about: 'Invite someone to a registration form; the gateway sends the mail',
        run: invitationAction('invite'),
      },
      invitations: {
        usage: '--config SOURCE [options]',
        about: 'List invitations',
        run: invitationAction('invitations'),
      },
      'resend-invitation': {
        usage: 'ID --config SOURCE [options]',
        arguments: ['ID'],
        about: 'Send an invitation again, with a new link',
        run: invitationAction('resend-invitation'),
      },
      'revoke-invitation': {
        usage: 'ID --config SOURCE [options]',
        arguments: ['ID'],
        about: 'Revoke an invitation',
        run: invitationAction('revoke-invitation'),
      },
      'reset-factors': {
        usage: 'DN [options]',
        arguments: ['DN'],
        about: 'Remove the second factors and recovery codes of a user',
        run: (values, [dn = ''], io) =>
          withDatabase(values, (storage) => resetFactors(dn, operatorName(values.by), storage, io)),
      },
    },
    notes: `add and passwd read the password from the terminal, or from the first line of standard input.
reset-factors takes the DN of the last login with a second factor, of a user in any insert; list prints DNs.`,
    examples: [
      'gatehouse user add ada --config config --attribute mail=ada@example.com --group admins',
      'gatehouse user invite grace@example.com --config config',
      'gatehouse user reset-factors uid=ada,ou=people,o=Tremolo --data data',
    ],
    describe,
  })

export const userCommand: RunCommand = (args, io) => userCommandReading(process.stdin)(args, io)

function add(values: UserValues, login: string, input: PasswordInput, io: CommandOutput): Promise<number> {
  const attributes = readPairs('attribute', values.attribute)
  const groups = values.group
  const problem = loginProblem(login)
  if (problem !== undefined) throw new WrongUsage(`LOGIN ${problem}; choose another one`)
  return withPeople(values, 'add', login, io, async ({ people, cause, storage, config }) => {
    const password = values['no-password'] ? undefined : await readPassword(input, io.stderr)
    await auditChanges(await people.addPerson({ login, attributes, groups, password }), cause, storage)
    const joined = groups.length === 0 ? '' : `, in the group${groups.length === 1 ? '' : 's'} ${groups.join(', ')}`
    const next =
      password === undefined
        ? 'The user has no password and logs in at an outside issuer; "gatehouse user passwd" sets one.'
        : 'The user can log in with this password.'
    printLines([`Added "${login}" to the directory "${config.name}"${joined}. ${next}`], io)
    io.result({ login, directory: config.name, groups, hasPassword: password !== undefined })
  })
}

/** A user whose password changed must log in again. */
function setPassword(values: UserValues, login: string, input: PasswordInput, io: CommandOutput): Promise<number> {
  return withPeople(values, 'passwd', login, io, async ({ people, cause, storage, config }) => {
    const owner = await identityOf(login, people, config)
    const password = await readPassword(input, io.stderr)
    const write = (): Promise<readonly EntryChange[]> => people.setPassword(login, password)
    if (owner === undefined) await auditChanges(await write(), cause, storage)
    else await replacePassword(write, owner, cause, storage)
    printLines([`Set the password of "${login}". The user must log in again.`], io)
    io.result({ login, directory: config.name, hasPassword: true })
  })
}

/** A user who is removed is also logged out. */
function remove(values: UserValues, [login = '']: readonly string[], io: CommandOutput): Promise<number> {
  return withPeople(values, 'remove', login, io, async ({ people, cause, storage, config }) => {
    const owner = await identityOf(login, people, config)
    const changes = await people.removePerson(login)
    if (changes.length === 0) throw new Error(`there is no user with the login "${login}"`)
    await auditChanges(changes, cause, storage)
    if (owner !== undefined) await storage.sessions.deleteOfOwner(owner)
    printLines([`Removed "${login}" and ended the user's sessions.`], io)
    io.result({ login, directory: config.name, removed: true })
  })
}

function list(values: UserValues, _: readonly string[], io: CommandOutput): Promise<number> {
  return withPeople(values, 'list', '', io, async ({ people, config }) => {
    const read = async (limit: number, after: string | undefined) => {
      const page = await people.listPeople(limit, after)
      return { items: page.people, next: page.next }
    }
    await io.list(listItems(read), {
      lines: ({ login, entry, hasPassword }) =>
        fitted([`${login}  ${hasPassword ? 'password' : 'no password'}  ${entry.dn}`]),
      json: ({ login, entry, hasPassword }) => ({ login, dn: `${entry.dn}`, hasPassword }),
      noun: `users in the directory "${config.name}"`,
    })
  })
}

function invitationAction(word: InvitationAction['word']) {
  return (values: UserValues, [argument = '']: readonly string[], io: CommandOutput): Promise<number> => {
    const { application, by } = values
    const action = { word, argument, application, by, attributes: readPairs('attribute', values.attribute) }
    return withConfiguration(values, io, async ({ configuration }) => {
      await withDatabase(values, (storage) => runInvitationAction(action, configuration, storage, io))
      return 0
    })
  }
}

interface OpenPeople {
  readonly people: PeopleInsert
  readonly config: InsertConfig
  readonly storage: Storage
  readonly cause: Cause
}

/** Opens the insert that has the users. Only `add` creates a database. */
function withPeople(
  values: UserValues,
  word: string,
  login: string,
  io: CommandIo,
  work: (open: OpenPeople) => Promise<void>,
): Promise<number> {
  return withConfiguration(values, io, async ({ configuration }) => {
    const config = chooseInsert(configuration, values.insert)
    const by = { requestor: operatorName(values.by), workflow: { id: newId(), name: `gatehouse user ${word}` } }
    const run = async (storage: Storage): Promise<void> => {
      const people = await openPeople(config, storage)
      try {
        await work({ people, config, storage, cause: { login, target: config.name, by } })
      } finally {
        await people.close?.()
      }
    }
    await withDatabase(values, run, word === 'add' ? 'create' : 'refuse')
    return 0
  })
}

/** Undefined if the insert has no such user. */
async function identityOf(login: string, people: PeopleInsert, config: InsertConfig): Promise<Identity | undefined> {
  const filter = { kind: 'equal', attribute: 'uid', value: login } as const
  const { entries } = await people.search({ base: config.suffix, scope: 'sub', filter, limit: 1 })
  return entries[0] && insertIdentity(config.name, entries[0])
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
  changes: readonly EntryChange[],
  { login, target, by }: Cause,
  { audit }: Storage,
): readonly AuditEntry[] {
  return new AuditTrail(by, audit).rowsOf({ time: systemClock(), subject: login, target }, changes)
}

async function auditChanges(changes: readonly EntryChange[], cause: Cause, storage: Storage): Promise<void> {
  const rows = rowsOf(changes, cause, storage)
  if (rows.length > 0) await storage.audit.append(rows)
}

/**
 * Ends the user's sessions and voids reset links and known devices with the commit that reports the change. If this process
 * dies after the write, the gateway ends the sessions.
 */
async function replacePassword(
  write: () => Promise<readonly EntryChange[]>,
  owner: Identity,
  cause: Cause,
  storage: Storage,
): Promise<void> {
  const store = storage.passwordChanges
  const claim = await store.begin({ id: newId(), form: '', owner, data: { login: cause.login } }, leaseMillis)
  let changes: readonly EntryChange[]
  try {
    changes = await write()
  } catch (error) {
    // Otherwise it is unknown whether the password was written.
    if (error instanceof GatewayError && error.isRefusal) await store.release(claim, { audit: [] })
    throw error
  }
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

/** Works for users of any directory. Throws WrongUsage for an invalid DN, and an Error for a DN without second factors. */
async function resetFactors(
  written: string,
  by: string,
  { secondFactors }: Pick<Storage, 'secondFactors'>,
  io: CommandOutput,
): Promise<void> {
  const dn = readDn(written)
  const subject = dn.rdns[0]?.[0]?.value ?? written
  const removed = await secondFactors.removeAllOfName(nameKey({ dn }), [
    {
      id: newId(),
      time: systemClock(),
      requestor: by,
      subject,
      workflow: { id: '', name: 'gatehouse user reset-factors' },
      target: 'gatehouse',
      kind: 'attribute',
      action: 'delete',
      attribute: 'second factor',
      value: 'all',
    },
  ])
  if (removed === 0) {
    throw new Error(
      `no user with second factors has the DN "${dn}", so nothing was removed: the user has none, or had another DN at the last login with one`,
    )
  }
  io.stdout(
    `Removed ${removed} second factor${removed === 1 ? '' : 's'} of "${dn}", and the recovery codes. Sessions continue.`,
  )
  io.stdout(
    'Where the chain has "enrol", the next login sets up a new one: anyone with the password can do that first.',
  )
  io.result({ dn: `${dn}`, removed })
}

/** Throws WrongUsage. */
function readDn(written: string): Dn {
  try {
    return Dn.parse(written)
  } catch (error) {
    throw new WrongUsage(`DN must be such as uid=ada,ou=people,o=Tremolo: ${messageOf(error)}`)
  }
}

/** The source of a password. */
type PasswordInput = NodeJS.ReadableStream & { readonly isTTY?: boolean }

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
