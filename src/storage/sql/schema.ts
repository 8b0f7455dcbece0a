import type { Generated } from 'kysely'
import type { WorkflowSchema } from '#storage/sql/workflow-schema.ts'

/** The tables, as `migrations/` make them. Times are milliseconds since 1970. */
export interface Schema extends WorkflowSchema {
  collections: CollectionTable
  collection_sizes: { collection: number; slot: number; size: number }
  entries: EntryTable
  attributes: AttributeTable
  memberships: { group_entry: number; user_entry: number }
  nested_groups: { group_entry: number; member_entry: number }
  former_names: { entry: number; key: string; time: number }
  sessions: SessionTable
  password_changes: PasswordChangeTable
  session_marks: { mark: string; public_id: string; expires: number }
  logins: LoginTable
  login_failures: { key: string; failures: number; locked_until: number; forget_at: number }
  audit: AuditTable
  journal: JournalTable
  event_streams: EventStreamTable
  events: EventTable
  endpoint_keys: EndpointKeysTable
  issuer_records: IssuerRecordTable
  portal_marks: { login_key: string; list: string; kind: string; name: string; at: number }
  portal_offers: { reference: string; login_key: string; workflow: string; parameters: string; expires: number }
  schema_migrations: { name: string; hash: string; applied: number }
}

interface CollectionTable {
  pk: Generated<number>
  directory: string
  kind: string
}

interface EntryTable {
  pk: Generated<number>
  collection: number
  id: string
  name: string
  key: string
  number: bigint | null
  version: number
  created: number
  modified: number
  held: Generated<string>
}

interface AttributeTable {
  entry: number
  name_key: string
  position: number
  collection: number
  name: string
  value: string
  value_key: string
  long_key: string | null
  number: bigint | null
}

interface SessionTable {
  id: string
  application: string
  user_id: string
  user_key: string
  login_key: string | null
  data: string
  created: number
  touched: number
  idle_seconds: number
  ends: number | null
  expires: number
  public_id: string
  context: string
}

interface PasswordChangeTable {
  id: string
  form: string
  token_hash: string | null
  owner: string
  data: string
  state: 'open' | 'writing' | 'used' | 'replaced'
  lease: number
  created: number
  expires: number
}

interface LoginTable {
  id: string
  browser: string
  host: string
  data: string
  version: number
  created: number
  expires: number
}

interface AuditTable {
  seq: Generated<number>
  id: string
  time: number
  requestor: string
  requestor_key: string
  subject: string
  subject_key: string
  workflow_id: string
  workflow_name: string
  target: string
  request_id: string | null
  changes: string
  caller: string | null
  approval: string | null
  reason: string | null
  chain: number | null
  chain_seq: number | null
  hash: string | null
  /** Set where the row is compact. */
  context: Generated<string | null>
}

interface JournalTable {
  seq: Generated<number>
  journal: string
  time: number
  request_id: string
  caller: string
  method: string
  path: string
  status: number
  keyword: string | null
  error: string | null
  millis: number
  details: string
}

interface EventStreamTable {
  name: string
  latest: number
  owner: string
  lease_until: number
  failures: number
  retry_at: number
}

interface EventTable {
  stream: string
  number: number
  id: string
  time: number
  key_name: string
  claims: string
}

interface EndpointKeysTable {
  endpoint: string
  version: number
  ring: string
  publications: string
  worker: string | null
  lease_until: number
  updated: number
}

interface IssuerRecordTable {
  issuer: string
  model: string
  id: string
  grant_id: string | null
  user_code: string | null
  data: string
  version: number
  consumed: number | null
  expires: number
}
