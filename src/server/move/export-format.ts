import { columnName } from '#database/statement.ts'

/**
 * Format 1 of an export: JSON Lines. The first line is a header, then `["kind",{…}]` for each row, in the order of `kinds`,
 * and last an end with counts and hashes. It is independent of the schema: a program that changes a table still writes and
 * reads these kinds and fields. Only a field that may be null is ever added to a kind, and a reader refuses what it does
 * not know; anything else is format 2, beside which format 1 is read for ever.
 */
export const exportFormat = 1

/** A line is never longer, so a reader needs no more memory. */
export const longestLine = 64 * 1024 * 1024

export const exportStart = '{"gatehouse":"export",'

/** A text, or a whole number below 2^53; with `?` it may be null, and is left out then. */
type FieldType = 'text' | 'text?' | 'number' | 'number?'

export interface Kind {
  readonly table: string
  /** Columns of the table: `runId` is `run_id`. */
  readonly fields: Readonly<Record<string, FieldType>>
  /** Columns that have the same value in every moved row, such as a lease of a process. */
  readonly fixed?: Readonly<Record<string, string | number | null>>
  /** The order of rows in a file, which is that of the primary key. */
  readonly order: string
  /** Which rows are moved; all if absent. */
  readonly where?: string
  /** A field with texts that the installation's keys encrypted. Others may look like one, since users choose them. */
  readonly sealed?: string
  /** The column that the database counts. */
  readonly counted?: string
  /** Databases from before the first release don't have the table. */
  readonly isNewer?: boolean
}

const ended = 'select id from runs where ended is not null'
const endedApprovals = `select id from approvals where run in (${ended})`

/** A row comes after the rows that it refers to. */
export const kinds: Readonly<Record<string, Kind>> = {
  directory: {
    table: 'collections',
    fields: { pk: 'number', directory: 'text', kind: 'text' },
    order: 'pk',
    counted: 'pk',
  },
  entry: {
    table: 'entries',
    fields: {
      pk: 'number',
      collection: 'number',
      id: 'text',
      name: 'text',
      version: 'number',
      created: 'number',
      modified: 'number',
      attributes: 'text',
    },
    order: 'pk',
    counted: 'pk',
  },
  membership: {
    table: 'memberships',
    fields: { groupEntry: 'number', userEntry: 'number' },
    order: 'group_entry, user_entry',
  },
  nestedGroup: {
    table: 'nested_groups',
    fields: { groupEntry: 'number', memberEntry: 'number' },
    order: 'group_entry, member_entry',
  },
  secondFactor: {
    table: 'second_factors',
    fields: {
      id: 'text',
      owner: 'text',
      ownerName: 'text?',
      place: 'number',
      kind: 'text',
      name: 'text',
      data: 'text',
      counter: 'number',
      created: 'number',
      lastUsed: 'number?',
    },
    order: 'id',
    sealed: 'data',
  },
  recoveryCode: { table: 'recovery_codes', fields: { owner: 'text', hash: 'text' }, order: 'owner, hash' },
  invitation: {
    table: 'invitations',
    fields: {
      id: 'text',
      form: 'text',
      tokenHash: 'text',
      email: 'text',
      attributes: 'text',
      invitedBy: 'text',
      state: 'text',
      created: 'number',
      expires: 'number',
      sent: 'number',
    },
    order: 'id',
  },
  signingKeys: {
    table: 'endpoint_keys',
    fields: { endpoint: 'text', version: 'number', ring: 'text', publications: 'text', updated: 'number' },
    fixed: { worker: null, leaseUntil: 0 },
    order: 'endpoint',
    sealed: 'ring',
  },
  definition: {
    table: 'definitions',
    fields: { hash: 'text', name: 'text', body: 'text', created: 'number' },
    order: 'hash',
    where: 'hash in (select definition from runs where ended is not null)',
  },
  run: {
    table: 'runs',
    fields: {
      seq: 'number',
      id: 'text',
      name: 'text',
      definition: 'text',
      state: 'text',
      subject: 'text',
      subjectKey: 'text',
      subjectIdentity: 'text?',
      requestor: 'text',
      requestorKey: 'text',
      requestorIdentity: 'text?',
      caller: 'text?',
      callerIdentity: 'text?',
      reason: 'text?',
      requestId: 'text?',
      accessEnds: 'number?',
      data: 'text',
      signal: 'text?',
      attempt: 'number',
      fence: 'number',
      due: 'number',
      deadline: 'number?',
      incident: 'text?',
      cancel: 'text?',
      touched: 'number',
      created: 'number',
      updated: 'number',
      ended: 'number',
    },
    fixed: { resource: null, secret: null, worker: null, leaseUntil: 0 },
    order: 'seq',
    where: 'ended is not null',
    counted: 'seq',
  },
  step: {
    table: 'steps',
    fields: {
      seq: 'number',
      run: 'text',
      number: 'number',
      attempt: 'number',
      task: 'text',
      taskType: 'text',
      label: 'text?',
      started: 'number',
      ended: 'number',
      outcome: 'text',
      error: 'text?',
    },
    order: 'seq',
    where: `run in (${ended})`,
    counted: 'seq',
  },
  approval: {
    table: 'approvals',
    fields: {
      id: 'text',
      run: 'text',
      step: 'number',
      label: 'text',
      state: 'text',
      opened: 'number',
      decided: 'number?',
      decidedBy: 'text?',
      decidedIdentity: 'text?',
      onBehalfOf: 'text?',
      comment: 'text?',
      allowSelf: 'number',
      commentRequired: 'number',
      accessEnds: 'number?',
      newAccount: 'number',
      rules: 'text',
      data: 'text',
      escalation: 'number',
      version: 'number',
    },
    order: 'id',
    where: `run in (${ended})`,
  },
  approver: {
    table: 'approval_approvers',
    fields: { approval: 'text', approverKey: 'text', approver: 'text', open: 'number' },
    order: 'approval, approver_key',
    where: `approval in (${endedApprovals})`,
  },
  message: {
    table: 'request_messages',
    fields: {
      run: 'text',
      id: 'text',
      kind: 'text',
      author: 'text',
      authorIdentity: 'text',
      at: 'number',
      body: 'text',
    },
    order: 'run, id',
    where: `run in (${ended})`,
  },
  grant: {
    table: 'grants',
    fields: {
      id: 'text',
      target: 'text',
      subject: 'text',
      subjectKey: 'text',
      kind: 'text',
      name: 'text',
      nameKey: 'text',
      granted: 'number',
      expires: 'number',
      run: 'text?',
      state: 'text',
      ended: 'number?',
      removal: 'text?',
    },
    order: 'id',
  },
  grantRun: {
    table: 'grant_runs',
    fields: { grantId: 'text', run: 'text' },
    order: 'grant_id, run',
    isNewer: true,
  },
  delegation: {
    table: 'delegations',
    fields: {
      id: 'text',
      login: 'text',
      loginKey: 'text',
      deputy: 'text',
      deputyKey: 'text',
      starts: 'number',
      ends: 'number',
    },
    order: 'id',
  },
  scimToken: {
    table: 'scim_tokens',
    isNewer: true,
    fields: {
      id: 'text',
      client: 'text',
      name: 'text',
      hash: 'text',
      created: 'number',
      createdBy: 'text?',
      expires: 'number?',
      revoked: 'number?',
      revokedBy: 'text?',
      lastUsed: 'number?',
    },
    order: 'id',
  },
  scimTenant: {
    table: 'scim_tenants',
    isNewer: true,
    fields: {
      name: 'text',
      host: 'text',
      path: 'text',
      profile: 'text',
      version: 'number',
      created: 'number',
      createdBy: 'text',
      disabled: 'number?',
      disabledBy: 'text?',
    },
    order: 'name',
  },
  portalMark: {
    table: 'portal_marks',
    fields: { loginKey: 'text', list: 'text', kind: 'text', name: 'text', at: 'number' },
    order: 'login_key, list, kind, name',
  },
  notificationSettings: {
    table: 'notification_settings',
    fields: { userKey: 'text', choices: 'text', language: 'text?', digest: 'number' },
    order: 'user_key',
  },
  digestEntry: {
    table: 'digest_entries',
    fields: { userKey: 'text', entry: 'text', at: 'number' },
    order: 'user_key, entry',
  },
  accountLink: {
    table: 'reconciliation_links',
    fields: {
      reconciliation: 'text',
      source: 'text',
      target: 'text?',
      decided: 'number',
      decidedBy: 'text',
      reason: 'text?',
    },
    order: 'reconciliation, source',
    isNewer: true,
  },
  auditContext: {
    table: 'audit_contexts',
    fields: { id: 'text', day: 'number', subject: 'text', shared: 'text' },
    order: 'id',
  },
  audit: {
    table: 'audit',
    fields: {
      seq: 'number',
      id: 'text',
      time: 'number',
      requestor: 'text',
      requestorKey: 'text',
      subject: 'text',
      subjectKey: 'text',
      workflowId: 'text',
      workflowName: 'text',
      target: 'text',
      requestId: 'text?',
      changes: 'text',
      caller: 'text?',
      approval: 'text?',
      reason: 'text?',
      chain: 'number',
      chainSeq: 'number',
      hash: 'text',
      context: 'text?',
    },
    order: 'seq',
    counted: 'seq',
  },
  auditChain: {
    table: 'audit_chains',
    fields: {
      chain: 'number',
      seq: 'number',
      hash: 'text',
      baseSeq: 'number',
      baseHash: 'text',
      sealedSeq: 'number?',
      sealedAt: 'number?',
      brokenSeq: 'number?',
      keyId: 'text?',
      mac: 'text?',
    },
    order: 'chain',
  },
  auditSink: {
    table: 'audit_sinks',
    fields: { name: 'text', configured: 'number', positions: 'text' },
    fixed: { owner: '', leaseUntil: 0, failures: 0, retryAt: 0 },
    order: 'name',
  },
}

export const selectOf = ({ table, fields, where, order }: Kind): string => {
  const columns = Object.keys(fields).map((name) => `${columnName(name)} as "${name}"`)
  return `select ${columns.join(', ')} from ${table}${where === undefined ? '' : ` where ${where}`} order by ${order}`
}

export interface ExportHeader {
  readonly gatehouse: 'export'
  readonly format: number
  /** The version of the program that wrote it. */
  readonly version: string
  /** ISO 8601. */
  readonly made: string
  readonly database: string
  /** The last migration of the database that it was read from. */
  readonly schema: string
  /** The id of the key that signs the end. */
  readonly key: string
}

export interface ExportEnd {
  readonly end: {
    /** Rows by kind. */
    readonly counts: Readonly<Record<string, number>>
    /** Ids of the installation's keys that encrypt what is in it. */
    readonly sealedWith: readonly string[]
    /** Over all bytes before this line. */
    readonly sha256: string
    /** HMAC-SHA-256 over the hash and the counts, with a key derived from the installation's. */
    readonly mac: string
  }
}

/** The id of the key in a text that the secret box made. */
export const sealedTexts = /\bg1\.([A-Za-z0-9_-]{12})\./g

export const macPurpose = 'gatehouse export'
