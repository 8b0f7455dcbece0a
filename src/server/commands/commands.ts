/** Where a command writes; passed in so that tests can read it. */
export interface CommandIo {
  stdout(line: string): void
  stderr(line: string): void
}

/** Resolves to the exit code: 0 done, 1 the thing asked about is not in order, 2 wrong usage. */
export type RunCommand = (args: string[], io: CommandIo) => Promise<number>

export interface Command {
  readonly about: string
  /** Loaded on demand, so that `check` does not pay for the server. */
  load(): Promise<RunCommand>
}

export const commands: Readonly<Record<string, Command>> = {
  serve: {
    about: 'Run the gateway on a configuration folder',
    load: async () => (await import('#server/commands/serve.ts')).serveCommand,
  },
  check: {
    about: 'Validate a configuration folder; with --production, also the settings for production',
    load: async () => (await import('#server/commands/check.ts')).checkCommand,
  },
  explain: {
    about: 'Show why a request would be allowed or denied',
    load: async () => (await import('#server/commands/explain.ts')).explainCommand,
  },
  token: {
    about: 'Mint development tokens from the local issuer',
    load: async () => (await import('#server/commands/token.ts')).tokenCommand,
  },
  keys: {
    about: 'List, rotate, revoke and publish the keys of token endpoints',
    load: async () => (await import('#server/commands/keys.ts')).keysCommand,
  },
  sts: {
    about: 'Explain and test what token endpoints decide, and publish their documents',
    load: async () => (await import('#server/commands/sts.ts')).stsCommand,
  },
  scim: {
    about: 'Set up a SCIM gateway for an identity provider, and print the latest calls and why they failed',
    load: async () => (await import('#server/commands/scim.ts')).scimCommand,
  },
  workflow: {
    about: 'List the runs of workflows, and retry, skip or cancel failed ones',
    load: async () => (await import('#server/commands/workflow.ts')).workflowCommand,
  },
  mail: {
    about: 'List mails that failed or may not have arrived, and send them again',
    load: async () => (await import('#server/commands/mail.ts')).mailCommand,
  },
  audit: {
    about: 'Verify, read, export, prune and seal the audit',
    load: async () => (await import('#server/commands/audit.ts')).auditCommand,
  },
  user: {
    about: 'Add, list, invite and remove users of the embedded directory, and set their passwords',
    load: async () => (await import('#server/commands/user.ts')).userCommand,
  },
  plugin: {
    about: 'Start a plug-in from a working example, and test it',
    load: async () => (await import('#server/commands/plugin.ts')).pluginCommand,
  },
}
