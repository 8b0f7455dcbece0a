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
    about: 'run the gateway on a configuration folder',
    load: async () => (await import('#server/commands/serve.ts')).serveCommand,
  },
  check: {
    about: 'tell every problem of a configuration folder',
    load: async () => (await import('#server/commands/check.ts')).checkCommand,
  },
  explain: {
    about: 'tell which application, chain, rules and filter decide a request, and why',
    load: async () => (await import('#server/commands/explain.ts')).explainCommand,
  },
  token: {
    about: 'mint development tokens from the local issuer',
    load: async () => (await import('#server/commands/token.ts')).tokenCommand,
  },
  keys: {
    about: 'tell, rotate and publish the keys of token endpoints',
    load: async () => (await import('#server/commands/keys.ts')).keysCommand,
  },
  sts: {
    about: 'explain what a token endpoint would do, and publish the documents of endpoints',
    load: async () => (await import('#server/commands/sts.ts')).stsCommand,
  },
  scim: {
    about: 'tell the latest calls to SCIM gateways, and why they failed',
    load: async () => (await import('#server/commands/scim.ts')).scimCommand,
  },
  workflow: {
    about: 'tell the runs of workflows, and retry, skip or cancel what went wrong',
    load: async () => (await import('#server/commands/workflow.ts')).workflowCommand,
  },
  mail: {
    about: 'tell the mails that were given up or may not have arrived, and send them again',
    load: async () => (await import('#server/commands/mail.ts')).mailCommand,
  },
  audit: {
    about: 'verify, read, export and prune the audit',
    load: async () => (await import('#server/commands/audit.ts')).auditCommand,
  },
  user: {
    about: 'add, list and remove the people of the embedded directory, and set their passwords',
    load: async () => (await import('#server/commands/user.ts')).userCommand,
  },
  plugin: {
    about: 'start a plug-in from a working example, and test it',
    load: async () => (await import('#server/commands/plugin.ts')).pluginCommand,
  },
}
