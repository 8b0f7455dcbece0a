import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import type { CommandOutput, RunCommand, Values } from '#cli/command-line/command-line.ts'
import { commandName, defineCommand } from '#cli/command-line/command-line.ts'
import { checkNewFolder, writeNewFolder } from '#cli/command-line/new-folder.ts'
import { outputOption } from '#cli/command-line/options.ts'
import { createTarget, sqliteFile } from '#cli/init/create-target.ts'
import { gatewayFiles } from '#cli/init/files.ts'
import { folderCommands, quoted } from '#cli/init/folder-commands.ts'
import { type GatewayPlan, planOptions, readPlan } from '#cli/init/plan.ts'
import { Questions, type Terminal } from '#cli/init/questions.ts'
import { scimPath } from '#cli/init/target.ts'

const initOptions = {
  ...planOptions,
  ...outputOption,
  'create-target': {
    about: 'sql: create sample tables in the database; ldap: create ou=people and ou=groups',
  },
} as const

/** Asks on the given terminal; without one, options and defaults decide everything. */
export const initCommandOn = (terminal: Terminal | undefined): RunCommand =>
  defineCommand({
    name: 'init',
    about: `Create the folder of a new gateway: a configuration, its secrets and a certificate for trying it out. With a
certificate of yours and an anchor of the audit elsewhere it passes "gatehouse check --production". Asks on a terminal for what the options don't say.`,
    usage: 'FOLDER [options]',
    arguments: ['FOLDER'],
    options: initOptions,
    notes: 'The folder must be new or empty. If anything fails, nothing is written.',
    examples: [
      'gatehouse init my-gateway',
      'gatehouse init my-gateway --local',
      'gatehouse init my-gateway --domain idm.example.com --login okta --issuer example.okta.com --client-id 0oa1',
    ],
    run: ({ output: _, ...values }, [folder = ''], io) => init(folder, values, terminal, io),
  })

export const initCommand: RunCommand = (args, io) =>
  initCommandOn(
    process.stdin.isTTY && process.stdout.isTTY ? { input: process.stdin, output: process.stdout } : undefined,
  )(args, io)

async function init(
  folder: string,
  { 'create-target': creates, local: isLocal, ...values }: Omit<Values<typeof initOptions>, 'output'>,
  terminal: Terminal | undefined,
  io: CommandOutput,
): Promise<void> {
  checkNewFolder(folder)
  const questions = new Questions(values, terminal)
  let plan: GatewayPlan
  try {
    plan = await readPlan(questions, isLocal)
  } finally {
    questions.close()
  }
  const created = creates ? await createTarget(plan) : undefined
  // Letters and digits only, which every SCIM client accepts.
  const token = randomBytes(32).toString('hex')
  await writeFolder(folder, plan, token)
  for (const line of nextSteps(folder, plan, token, created)) io.stdout(line)
  io.result({
    folder: resolve(folder),
    scim: { address: `${plan.origin}${scimPath}`, token },
    portal: `${plan.origin}/portal`,
    administrator: plan.administrator,
  })
}

/** Throws an Error without leaving anything behind. */
const writeFolder = (folder: string, plan: GatewayPlan, token: string): Promise<void> =>
  writeNewFolder(folder, async (made) => {
    await mkdir(join(made, 'data'), { mode: 0o700 })
    await mkdir(join(made, 'audit'), { mode: 0o700 })
    for (const [path, { text, secret }] of gatewayFiles(plan, token, resolve(folder))) {
      const file = join(made, path)
      await mkdir(dirname(file), { recursive: true, mode: secret === true && path !== 'gatehouse.env' ? 0o700 : 0o755 })
      await writeFile(file, text, { flag: 'wx', mode: secret === true ? 0o600 : 0o644 })
    }
  })

/** What to run next, in the order in which it works, from the folder in which `init` ran. */
function nextSteps(folder: string, plan: GatewayPlan, token: string, created: string | undefined): string[] {
  const { host, origin, login, administrator, isLocal } = plan
  const { loadSecrets, source, tls, port, serving } = folderCommands(folder, plan.port, isLocal)
  const command = commandName()
  const person =
    login.kind === 'passwords'
      ? ''
      : ` --no-password${login.kind === 'oidc' ? ` --attribute mail=${quoted(administrator)}` : ''}`
  const firstLogin =
    login.kind === 'passwords' ? ' The first login of a user sets up an authenticator app: have one at hand.' : ''
  const curl = isLocal
    ? 'curl'
    : `curl --cacert ${quoted(join(folder, 'tls', 'ca.crt'))} --resolve ${host}:${port}:127.0.0.1`
  const api = `${isLocal ? 'http' : 'https'}://${host}:${port}${scimPath}`
  return [
    `Created ${folder}. Start with its config folder: each file explains itself.`,
    '',
    `SCIM address  ${origin}${scimPath}`,
    `SCIM token    ${token}`,
    'Copy the token now: only its hash is stored.',
    '',
    ...notes(folder, plan, created),
    'Next, in this shell:',
    '',
    '  # Load the secrets',
    `  ${loadSecrets}`,
    ...(isLocal
      ? []
      : [
          '  # See what it needs before production: at least a certificate of yours, and an anchor of the audit elsewhere',
          `  ${command} check --production ${serving}`,
        ]),
    `  # Add the first administrator${login.kind === 'passwords' ? '; asks for a password' : ''}`,
    `  ${command} user add ${quoted(administrator)} ${source} --group administrators${person}`,
    '  # Run it',
    `  ${command} serve ${serving}`,
    '',
    'And in another shell, create a user and list all:',
    '',
    `  ${curl} -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/scim+json' ${api}/Users -d '{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "ada", "emails": [{"value": "ada@example.com"}]}'`,
    `  ${curl} -H 'Authorization: Bearer ${token}' ${api}/Users`,
    '',
    ...(isLocal
      ? [
          `Open ${origin}/portal in a browser of this machine, and log in as ${administrator}.${firstLogin}`,
          'Nothing else can reach it, since there is no TLS. For others, make a gateway with --domain.',
        ]
      : [
          `Users open ${origin}/portal.${firstLogin}${plan.port === '' ? ` Forward port 443 of ${host} to port ${port} of this machine.` : ''}`,
          `The certificate in ${join(folder, 'tls')} is for trying it out: no browser trusts it. Replace tls.crt and tls.key with those of a public authority.`,
        ]),
    'If something does not work, load the secrets in another shell, and run:',
    '',
    `  ${command} doctor ${source} ${tls}`.trimEnd(),
  ]
}

/** What must be done elsewhere before the commands work. */
function notes(folder: string, { login, target, origin }: GatewayPlan, created: string | undefined): string[] {
  const lines = [
    ...(login.kind === 'passwords' ? [] : [`At the issuer, register the redirect address ${origin}/auth/oidc.`]),
    ...(created === undefined ? [] : [created]),
    ...(target.kind === 'sql' && created === undefined ? sqlNotes(folder, target) : []),
    ...(target.kind === 'ldap' ? ldapNotes(folder, target.values, created !== undefined) : []),
    ...(target.kind === 'scim'
      ? [
          'Assumed of the server: users and groups of SCIM 2.0. What it announces in /Schemas is what clients can store.',
        ]
      : []),
    ...(target.kind === 'webhook'
      ? ['config/target.yaml has the requests of a sample API: replace them with those of your application.']
      : []),
    ...(target.kind === 'kubernetes' ? ['The cluster must have the kind User: see config/target.yaml.'] : []),
  ]
  return lines.length === 0 ? [] : [...lines, '']
}

const assumedTables = 'Assumed of the database: the tables and columns in config/target.yaml.'

function sqlNotes(folder: string, target: GatewayPlan['target']): string[] {
  const schema = quoted(join(folder, 'target-schema.sql'))
  const file = sqliteFile(target)
  // The address of PostgreSQL has a password.
  if (file === undefined) {
    return [`${assumedTables} Replace them by your own, or create them:`, '', `  psql ADDRESS -f ${schema}`]
  }
  const create = `sqlite3 ${quoted(file)} < ${schema}`
  if (existsSync(file)) return [`${assumedTables} Replace them by your own, or create them:`, '', `  ${create}`]
  const parent = dirname(file)
  const isLost = !existsSync(parent)
  return [
    `${file} does not exist yet${isLost ? ', nor does its folder' : ''}. ${assumedTables}`,
    'Create it with the tables of your application, or, for trying it out, with sample tables, as --create-target does:',
    '',
    `  ${isLost ? `mkdir -p ${quoted(parent)} && ` : ''}${create}`,
  ]
}

function ldapNotes(folder: string, values: Readonly<Record<string, string>>, isCreated: boolean): string[] {
  const [url, user, base] = ['TARGET_URL', 'TARGET_USER', 'TARGET_BASE'].map((name) => values[name] ?? '')
  const file = (name: string): string => quoted(join(folder, name))
  const entries = [
    `Assumed of the LDAP server: ou=people,${base} and ou=groups,${base}, which this creates:`,
    '',
    `  ldapadd -x -H ${quoted(url ?? '')} -D ${quoted(user ?? '')} -W -f ${file('target-entries.ldif')}`,
    '',
  ]
  return [
    ...(isCreated ? [] : entries),
    'externalId, locale, roles and others need the classes scimPerson and scimGroup. On the machine of an OpenLDAP server:',
    '',
    `  ldapadd -Y EXTERNAL -H ldapi:/// -f ${file('target-schema.ldif')}`,
  ]
}
