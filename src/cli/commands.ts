import type { CommandTable } from '#cli/command-line/command-line.ts'

export type { Command } from '#cli/command-line/command-line.ts'

export const commands: CommandTable = {
  serve: {
    about: 'Run the gateway',
    load: async () => (await import('#cli/commands/serve.ts')).serveCommand,
  },
  init: {
    about: 'Create the folder of a new gateway',
    load: async () => (await import('#cli/commands/init.ts')).initCommand,
  },
  export: {
    about: 'Write users, grants, keys and the audit for another database',
    load: async () => (await import('#cli/commands/export.ts')).exportCommand,
  },
  import: {
    about: 'Read an export into a new database, or an installation of OpenUnison',
    load: async () => (await import('#cli/commands/import.ts')).importCommand,
  },
  check: {
    about: 'Validate a configuration',
    load: async () => (await import('#cli/commands/check.ts')).checkCommand,
  },
  schema: {
    about: 'Print the JSON Schema of the configuration, for editors',
    load: async () => (await import('#cli/commands/schema.ts')).schemaCommand,
  },
  doctor: {
    about: 'Check what a gateway needs and report problems',
    load: async () => (await import('#cli/commands/doctor.ts')).doctorCommand,
  },
  'support-bundle': {
    about: 'Collect what a helper needs to find a problem, without secrets',
    load: async () => (await import('#cli/commands/support-bundle.ts')).supportBundleCommand,
  },
  explain: {
    about: 'Show why a request would be allowed or denied',
    load: async () => (await import('#cli/commands/explain.ts')).explainCommand,
  },
  examples: {
    about: 'Print commands that call a running gateway',
    load: async () => (await import('#cli/commands/examples.ts')).examplesCommand,
  },
  token: {
    about: 'Create tokens for development',
    load: async () => (await import('#cli/commands/token.ts')).tokenCommand,
  },
  keys: {
    about: 'List, rotate, revoke and publish the keys of token endpoints',
    load: async () => (await import('#cli/commands/keys.ts')).keysCommand,
  },
  sts: {
    about: 'Explain, test and publish token endpoints',
    load: async () => (await import('#cli/commands/sts.ts')).stsCommand,
  },
  scim: {
    about: 'Set up SCIM gateways and read their journal',
    load: async () => (await import('#cli/commands/scim.ts')).scimCommand,
  },
  workflow: {
    about: 'List workflow runs, and retry, skip or cancel them',
    load: async () => (await import('#cli/commands/workflow.ts')).workflowCommand,
  },
  reconcile: {
    about: 'Compare two systems, and apply the differences',
    load: async () => (await import('#cli/commands/reconcile.ts')).reconcileCommand,
  },
  mail: {
    about: 'List unsent mail and send it again',
    load: async () => (await import('#cli/commands/mail.ts')).mailCommand,
  },
  audit: {
    about: 'Verify, read, export, prune and seal the audit log',
    load: async () => (await import('#cli/commands/audit.ts')).auditCommand,
  },
  backup: {
    about: 'Copy the SQLite database of a gateway to a file',
    load: async () => (await import('#cli/commands/backup.ts')).backupCommand,
  },
  restore: {
    about: 'Put a backup into an empty data folder',
    load: async () => (await import('#cli/commands/restore.ts')).restoreCommand,
  },
  migrate: {
    about: 'Bring the tables of the database to this version',
    load: async () => (await import('#cli/commands/migrate.ts')).migrateCommand,
  },
  user: {
    about: 'Manage users of the embedded directory, invitations and second factors',
    load: async () => (await import('#cli/commands/user.ts')).userCommand,
  },
  plugin: {
    about: 'Create and test plug-ins',
    load: async () => (await import('#cli/commands/plugin.ts')).pluginCommand,
  },
  completion: {
    about: 'Print the script with which a shell completes commands',
    load: async () => (await import('#cli/commands/completion.ts')).completionCommand(commands),
  },
  version: {
    about: 'Show the versions of Gatehouse and of what it runs on',
    load: async () => (await import('#cli/commands/version.ts')).versionCommand,
  },
  help: {
    about: 'Show the help of a command',
    load: async () => (await import('#cli/commands/help.ts')).helpCommand(commands),
  },
}
