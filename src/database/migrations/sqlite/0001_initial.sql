-- The whole schema. PostgreSQL has the same tables, columns and indexes. Times are milliseconds since 1970. A column
-- `…_key` is a text in the form in which it is compared: letter case folded, bounded length.

-- Directories ---------------------------------------------------------------------------------------------------------

-- The users or the groups of an embedded directory.
create table collections (
  pk integer primary key,
  directory text not null,
  kind text not null check (kind in ('users', 'groups')),
  unique (directory, kind)
) strict;

-- A part of the size of a collection. The sum of its slots is the number of its entries; concurrent writers use
-- different slots.
create table collection_sizes (
  collection integer not null references collections (pk) on delete cascade,
  slot integer not null,
  size integer not null,
  primary key (collection, slot)
) strict, without rowid;

-- A user or a group. `key` is the folded name, `number` the value of a name that is a whole number. `attributes` holds
-- all values as they are read: a JSON list of [attribute name, [values]].
create table entries (
  pk integer primary key,
  collection integer not null references collections (pk) on delete cascade,
  id text not null unique,
  name text not null,
  key text not null,
  number integer,
  version integer not null,
  created integer not null,
  modified integer not null,
  attributes text not null default '[]',
  unique (collection, key)
) strict;
create index entries_in_order on entries (collection, pk);
create index entries_by_modified on entries (collection, modified, pk);
create index entries_by_created on entries (collection, created, pk);

-- One value of an attribute, to find entries by. `value_key` is the folded value; of a long value only the start, and
-- then `long_key` has all of it.
create table attributes (
  entry integer not null references entries (pk) on delete cascade,
  name_key text not null,
  position integer not null,
  collection integer not null,
  name text not null,
  value text not null,
  value_key text not null,
  long_key text,
  number integer,
  primary key (entry, name_key, position)
) strict, without rowid;
create index attributes_by_value on attributes (collection, name_key, value_key, entry);

-- A user that is a member of a group.
create table memberships (
  group_entry integer not null references entries (pk) on delete cascade,
  user_entry integer not null references entries (pk) on delete cascade,
  primary key (group_entry, user_entry)
) strict, without rowid;
create index memberships_of_user on memberships (user_entry, group_entry);

-- A group that is a direct member of another group of the same directory. No group contains itself, directly or through
-- other groups.
create table nested_groups (
  group_entry integer not null references entries (pk) on delete cascade,
  member_entry integer not null references entries (pk) on delete cascade,
  primary key (group_entry, member_entry),
  check (group_entry <> member_entry)
) strict, without rowid;
create index nested_groups_of_member on nested_groups (member_entry, group_entry);

-- A name that a group had until recently, so that a change that refers to it is recognized as outdated.
create table former_names (
  entry integer not null references entries (pk) on delete cascade,
  key text not null,
  time integer not null,
  primary key (entry, key)
) strict, without rowid;

-- Sessions and logins -------------------------------------------------------------------------------------------------

-- A session. `id` is the hash of a bearer secret. Its owner sees it as `public_id`; applications that share a cookie
-- share a `context`. `user_id` is the owner's login, `user_key` the owner's identity.
create table sessions (
  id text primary key,
  public_id text not null default '',
  context text not null default '',
  application text not null,
  user_id text not null,
  user_key text not null,
  login_key text,
  data text not null,
  created integer not null,
  touched integer not null,
  idle_seconds integer not null,
  ends integer,
  expires integer not null
) strict, without rowid;
create index sessions_of_user on sessions (user_key);
create index sessions_by_expiry on sessions (expires);
create index sessions_by_public_id on sessions (public_id);
create index sessions_of_login on sessions (login_key);

-- A session that ends when another party says so, such as an identity provider that names the mark.
create table session_marks (
  mark text not null,
  public_id text not null,
  expires integer not null,
  primary key (mark, public_id)
) strict, without rowid;
create index session_marks_by_expiry on session_marks (expires);

-- A login in progress. `browser` is the hash of a bearer secret; `data` is encrypted.
create table logins (
  id text primary key,
  browser text not null,
  host text not null,
  data text not null,
  version integer not null,
  created integer not null,
  expires integer not null
) strict, without rowid;
create index logins_of_browser on logins (browser, created);
create index logins_by_expiry on logins (expires);

-- The failed logins of one account or address; `key` is its hash.
create table login_failures (
  key text primary key,
  failures integer not null,
  counted_at integer not null,
  locked_until integer not null,
  forget_at integer not null
) strict, without rowid;
create index login_failures_by_age on login_failures (forget_at);

-- A token of a SCIM client: `hash` is that of its text. Tokens that can be used have different names in a client, except
-- for one that was rotated and its successor.
create table scim_tokens (
  id text primary key,
  client text not null,
  name text not null,
  hash text not null unique,
  created integer not null,
  created_by text,
  expires integer,
  revoked integer,
  revoked_by text,
  last_used integer
) strict, without rowid;
create index scim_tokens_by_client on scim_tokens (client, name);

-- A SCIM gateway with users of its own, which an operator has added. Its client in `scim_tokens` has its name.
create table scim_tenants (
  name text primary key,
  host text not null,
  path text not null,
  profile text not null,
  version integer not null,
  created integer not null,
  created_by text not null,
  disabled integer,
  disabled_by text,
  unique (host, path)
) strict, without rowid;

-- A second factor of an identity. `owner_name` is the login with which it was last used, for administrators. `data` is
-- encrypted; `counter` rejects codes that were used.
create table second_factors (
  id text primary key,
  owner text not null,
  owner_name text,
  place integer not null,
  kind text not null,
  name text not null,
  data text not null,
  counter integer not null,
  created integer not null,
  last_used integer,
  unique (owner, place)
) strict, without rowid;
create index second_factors_by_name on second_factors (owner_name);

-- The hash of a code that replaces a lost second factor once.
create table recovery_codes (
  owner text not null,
  hash text not null,
  primary key (owner, hash)
) strict, without rowid;

-- A password reset link, or a password that is being written; the latter may have no link and so no `token_hash`.
-- Until `lease` the process that writes the password has to report the outcome.
create table password_changes (
  id text primary key,
  form text not null,
  token_hash text unique,
  owner text not null,
  data text not null,
  state text not null check (state in ('open', 'writing', 'used', 'replaced')),
  lease integer not null,
  created integer not null,
  expires integer not null
) strict, without rowid;
create index password_changes_of_owner on password_changes (owner, created);
create index password_changes_by_expiry on password_changes (expires);
create index password_changes_under_way on password_changes (lease) where state = 'writing';

-- Registration --------------------------------------------------------------------------------------------------------

-- A value that must be unique, reserved for a registration until its run has stored it. `key` is a hash.
create table reservations (
  key text primary key,
  owner text not null,
  run text,
  expires integer not null
) strict, without rowid;
create index reservations_by_owner on reservations (owner);
create index reservations_by_expiry on reservations (expires);

-- A registration that waits for the confirmation of a mail address. `sealed` is encrypted.
create table pending_registrations (
  id text primary key,
  form text not null,
  token_hash text not null unique,
  sealed text not null,
  expires integer not null
) strict, without rowid;
create index pending_registrations_by_expiry on pending_registrations (expires);

-- An invitation to register.
create table invitations (
  id text primary key,
  form text not null,
  token_hash text not null unique,
  email text not null,
  attributes text not null,
  invited_by text not null,
  state text not null check (state in ('open', 'accepted', 'revoked')),
  created integer not null,
  expires integer not null,
  sent integer not null
) strict, without rowid;
create index invitations_by_form on invitations (form, id);
create index invitations_by_expiry on invitations (expires);

-- Tokens --------------------------------------------------------------------------------------------------------------

-- The keys of a token endpoint. `ring` is all of them; a change compares `version`.
create table endpoint_keys (
  endpoint text primary key,
  version integer not null,
  ring text not null,
  publications text not null,
  worker text,
  lease_until integer not null,
  updated integer not null
) strict, without rowid;

-- A code, grant or refresh token of one of our issuers. `id` is the hash of a bearer secret; `data` is encrypted.
-- `version` grows with every change.
create table issuer_records (
  issuer text not null,
  model text not null,
  id text not null,
  grant_id text,
  user_code text,
  data text not null,
  version integer not null,
  consumed integer,
  expires integer not null,
  primary key (issuer, model, id)
) strict, without rowid;
create index issuer_records_of_grant on issuer_records (issuer, grant_id) where grant_id is not null;
create index issuer_records_by_user_code on issuer_records (issuer, user_code) where user_code is not null;
create index issuer_records_by_expiry on issuer_records (expires);

-- A stream of security events. `latest` is the number of its last event; the owner delivers until `lease_until`.
create table event_streams (
  name text primary key,
  latest integer not null,
  owner text not null,
  lease_until integer not null,
  failures integer not null,
  retry_at integer not null
) strict, without rowid;

-- An event that its receiver has not acknowledged. `claims` is the token before it is signed.
create table events (
  stream text not null references event_streams (name) on delete cascade,
  number integer not null,
  id text not null unique,
  time integer not null,
  key_name text not null,
  claims text not null,
  primary key (stream, number)
) strict, without rowid;
create index events_by_time on events (stream, time);

-- Workflows -----------------------------------------------------------------------------------------------------------

-- A workflow definition to which runs are pinned. `body` is JSON.
create table definitions (
  hash text primary key,
  name text not null,
  body text not null,
  created integer not null
) strict, without rowid;

-- A run that outlives the call that started it. `seq` is the order within a subject. `data`, `signal`, `incident` and
-- `cancel` are JSON; `secret` is encrypted. `fence` grows with every claim, and a commit must know it. A run that is
-- executed within its call has no worker. `access_ends` is the requested expiry of the access.
create table runs (
  seq integer primary key autoincrement,
  id text not null unique,
  name text not null,
  definition text not null,
  state text not null check (state in ('ready', 'running', 'waiting', 'incident', 'completed', 'denied', 'expired', 'failed', 'cancelled')),
  subject text not null,
  subject_key text not null,
  subject_identity text,
  resource text,
  requestor text not null,
  requestor_key text not null,
  requestor_identity text,
  caller text,
  caller_identity text,
  reason text,
  request_id text,
  access_ends integer,
  data text not null,
  signal text,
  secret text,
  attempt integer not null,
  fence integer not null,
  worker text,
  lease_until integer not null,
  due integer not null,
  deadline integer,
  incident text,
  cancel text,
  touched integer not null,
  created integer not null,
  updated integer not null,
  ended integer
) strict;
create index runs_due on runs (due, seq) where state = 'ready';
create index runs_leased on runs (lease_until) where state = 'running';
create index runs_queued on runs (subject_key, seq) where state = 'ready';
create index runs_by_subject on runs (subject_key, seq);
create index runs_by_requestor on runs (requestor_key, seq);
create index runs_by_state on runs (state, seq);
create index runs_by_name on runs (name, state, seq);
create index runs_ended on runs (ended) where ended is not null;
-- What changed lately, for portals that are open.
create index runs_by_update on runs (updated);
-- Workers execute one run of a subject at a time. A run within its call delays no other.
create unique index runs_running on runs (subject_key) where state = 'running' and worker is not null;
-- Statistics read this index alone.
create index runs_by_creation on runs (created, state, name);
create index runs_by_requestor_identity on runs (requestor_identity, seq);
create index runs_by_subject_identity on runs (subject_identity, seq);
-- Changes that their callers may repeat before they are finished: few, so these indexes are small.
create index runs_unfinished on runs (subject_key) where resource is not null and ended is null;
create index runs_of_resource on runs (resource) where resource is not null and ended is null;

-- One attempt of a step of a run.
create table steps (
  seq integer primary key autoincrement,
  run text not null references runs (id) on delete cascade,
  number integer not null,
  attempt integer not null,
  task text not null,
  task_type text not null,
  label text,
  started integer not null,
  ended integer not null,
  outcome text not null,
  error text
) strict;
create index steps_of_run on steps (run, seq);

-- An approval. `rules` and `data` are JSON. A decision updates a row that is still open. `access_ends` is the expiry of
-- the access when the approval was opened. `new_account` is 1 for a run that may only create accounts: approvers see
-- what was submitted, not an account with that login.
create table approvals (
  id text primary key,
  run text not null references runs (id) on delete cascade,
  step integer not null,
  label text not null,
  state text not null check (state in ('open', 'approved', 'denied', 'cancelled')),
  opened integer not null,
  decided integer,
  decided_by text,
  decided_identity text,
  on_behalf_of text,
  comment text,
  allow_self integer not null,
  comment_required integer not null default 0,
  access_ends integer,
  new_account integer not null default 0,
  rules text not null,
  data text not null,
  escalation integer not null,
  version integer not null
) strict, without rowid;
create index approvals_of_run on approvals (run, id);
create index approvals_by_state on approvals (state, id);
create index approvals_by_decider on approvals (decided_identity, decided, id) where decided_identity is not null;
-- Statistics read these indexes alone.
create index approvals_by_opening on approvals (opened, escalation);
create index approvals_by_decision on approvals (decided, state, opened) where decided is not null;

-- A user who may decide an approval; `approver_key` is the identity. `open` is 1 while the approval is open, so that an
-- approver's list is one range of the index.
create table approval_approvers (
  approval text not null references approvals (id) on delete cascade,
  approver_key text not null,
  approver text not null,
  open integer not null,
  primary key (approval, approver_key)
) strict, without rowid;
create index approval_approvers_open on approval_approvers (approver_key, open, approval);

-- Questions of approvers to the requester of a run, and the answers. Ids sort by time.
create table request_messages (
  run text not null references runs (id) on delete cascade,
  id text not null,
  kind text not null check (kind in ('question', 'answer')),
  author text not null,
  author_identity text not null,
  at integer not null,
  body text not null,
  primary key (run, id)
) strict, without rowid;

-- Something to do at a time, for a run, an approval or the gateway. `data` is JSON.
create table timers (
  id text primary key,
  kind text not null,
  due integer not null,
  run text,
  approval text,
  data text not null,
  fence integer not null,
  lease_until integer not null
) strict, without rowid;
create index timers_due on timers (due, id);
create index timers_of_run on timers (run);
create index timers_of_approval on timers (approval);

-- A mail to send, or the fact that it was sent: its text is removed then. `links` is JSON. No `notifier` means the default
-- one. With a time in `handed_over` and without a worker, a queued mail may have arrived or not.
create table mails (
  id text primary key,
  run text,
  step integer,
  notifier text,
  recipient text not null,
  subject text not null,
  body text not null,
  html text,
  links text,
  state text not null check (state in ('queued', 'sent', 'failed')),
  attempt integer not null,
  due integer not null,
  fence integer not null,
  lease_until integer not null,
  handed_over integer,
  error text,
  updated integer not null
) strict, without rowid;
create index mails_due on mails (state, due, id);
create index mails_ended on mails (updated) where state <> 'queued';
create index mails_handed_over on mails (lease_until) where handed_over is not null and state = 'queued';

-- Access that expires. `ended` is when it was revoked, and `removal` the run that removes it then.
create table grants (
  id text primary key,
  target text not null,
  subject text not null,
  subject_key text not null,
  kind text not null,
  name text not null,
  name_key text not null,
  granted integer not null,
  expires integer not null,
  run text,
  state text not null check (state in ('active', 'revoked')),
  ended integer,
  removal text
) strict, without rowid;
create unique index grants_active on grants (target, subject_key, kind, name_key) where state = 'active';
create index grants_due on grants (expires, id) where state = 'active';
create index grants_of_subject on grants (subject_key, state, id);
create index grants_of_run on grants (run);

-- Later runs that granted or extended the access of a grant; `grants.run` is the first one.
create table grant_runs (
  grant_id text not null,
  run text not null,
  primary key (grant_id, run)
) strict, without rowid;
create index grant_runs_of_run on grant_runs (run);

-- A deputy who may decide for an approver for some time. `login_key` and `deputy_key` are identities.
create table delegations (
  id text primary key,
  login text not null,
  login_key text not null,
  deputy text not null,
  deputy_key text not null,
  starts integer not null,
  ends integer not null
) strict, without rowid;
create index delegations_of on delegations (login_key, ends);
create index delegations_to on delegations (deputy_key, ends);

-- A due time of a scheduled job. The process that inserts it runs the job.
create table job_runs (
  name text not null,
  due integer not null,
  state text not null check (state in ('running', 'done', 'failed')),
  worker text not null,
  fence integer not null,
  lease_until integer not null,
  started integer not null,
  ended integer,
  error text,
  primary key (name, due)
) strict, without rowid;
create index job_runs_leased on job_runs (lease_until) where state = 'running';
create index job_runs_ended on job_runs (ended) where ended is not null;

-- The gateway processes that use the database, and when each was last seen. SQLite has one gateway, which isn't listed.
create table replicas (
  name text primary key,
  version text not null,
  started integer not null,
  seen integer not null
) strict, without rowid;
create index replicas_by_time on replicas (seen);

-- A call whose retry gets the answer of the first. `lease_until` is null once that is final.
create table idempotency (
  scope text not null,
  key text not null,
  body_hash text not null,
  run text not null,
  response text,
  lease_until integer,
  created integer not null,
  primary key (scope, key)
) strict, without rowid;
create index idempotency_by_age on idempotency (created);

-- Reconciliation ------------------------------------------------------------------------------------------------------

-- A comparison of the two systems of a reconciliation, and what is done about the differences. A worker claims a plan
-- that is `due`; without a due time it waits for a person. `resume_at` is where the comparison continues. `scheduled` is
-- the time of the schedule that requested it. `automatic` is 1 if no person requested it. `people` is a JSON list of logins: only these changed people are compared.
-- `counts` is JSON. `definition` is a hash of the configuration that the rows were found with.
create table reconciliation_plans (
  id text primary key,
  reconciliation text not null,
  state text not null check (state in
    ('requested', 'comparing', 'planned', 'applying', 'paused', 'applied', 'stopped', 'failed', 'expired')),
  scheduled integer,
  requested_by text not null,
  automatic integer not null,
  reason text,
  people text,
  approved integer,
  approved_by text,
  approved_identity text,
  approved_reason text,
  counts text not null,
  resume_at text,
  definition text,
  problem text,
  attempt integer not null,
  worker text,
  fence integer not null,
  lease_until integer not null,
  due integer,
  created integer not null,
  compared integer,
  ended integer,
  updated integer not null
) strict, without rowid;
create index reconciliation_plans_of on reconciliation_plans (reconciliation, id);
create index reconciliation_plans_due on reconciliation_plans (due) where due is not null;
-- Of one reconciliation, one plan is compared or applied at a time, and a time of the schedule requests one plan.
create unique index reconciliation_plans_active on reconciliation_plans (reconciliation)
  where state in ('requested', 'comparing', 'applying', 'paused');
create unique index reconciliation_plans_scheduled on reconciliation_plans (reconciliation, scheduled)
  where scheduled is not null;

-- A difference of a plan. `difference` is JSON; `row_key` is the same for the same accounts in every plan, `source_key`
-- and `target_key` are the logins. `removes` is 1 if it takes access away. `run` changes the account. A row that failed
-- `attempt` times, which may pass, is tried again when it is `due`.
create table reconciliation_rows (
  plan text not null references reconciliation_plans (id) on delete cascade,
  number integer not null,
  row_key text not null,
  kind text not null,
  action text not null,
  removes integer not null,
  state text not null check (state in ('reported', 'open', 'started', 'waiting', 'done', 'skipped', 'failed')),
  source_key text,
  target_key text,
  difference text not null,
  run text,
  reason text,
  attempt integer not null,
  due integer,
  updated integer not null,
  primary key (plan, number)
) strict, without rowid;
create unique index reconciliation_rows_by_key on reconciliation_rows (plan, row_key);
create index reconciliation_rows_by_state on reconciliation_rows (plan, state, number);
create index reconciliation_rows_removed on reconciliation_rows (plan) where removes = 1;
create index reconciliation_rows_by_source on reconciliation_rows (source_key, plan) where source_key is not null;
create index reconciliation_rows_by_target on reconciliation_rows (target_key, plan) where target_key is not null;

-- A decision of a person which account a person of the source has; without a `target` the person has none.
create table reconciliation_links (
  reconciliation text not null,
  source text not null,
  target text,
  decided integer not null,
  decided_by text not null,
  reason text,
  primary key (reconciliation, source)
) strict, without rowid;
create unique index reconciliation_links_by_target on reconciliation_links (reconciliation, target)
  where target is not null;

-- The outcome of a comparison, for the trend.
create table reconciliation_reports (
  plan text primary key,
  reconciliation text not null,
  at integer not null,
  source integer not null,
  target integer not null,
  agree integer not null,
  missing integer not null,
  different integer not null,
  extra integer not null,
  ambiguous integer not null,
  unknown integer not null
) strict, without rowid;
create index reconciliation_reports_of on reconciliation_reports (reconciliation, at);
create index reconciliation_reports_that_agree on reconciliation_reports (reconciliation, at)
  where missing + different + extra + ambiguous + unknown = 0;

-- Up to where a reconciliation knows the audit, by chain, as JSON: what follows may have changed its people.
create table reconciliation_feeds (
  reconciliation text primary key,
  positions text not null
) strict, without rowid;

-- Portal --------------------------------------------------------------------------------------------------------------

-- Something that a user marked in the portal or used last; `login_key` is the user's identity.
create table portal_marks (
  login_key text not null,
  list text not null,
  kind text not null,
  name text not null,
  at integer not null,
  primary key (login_key, list, kind, name)
) strict, without rowid;
create index portal_marks_by_time on portal_marks (login_key, list, at);

-- Parameters with which a user was offered a workflow. `reference` is the hash of what the user has.
create table portal_offers (
  reference text primary key,
  login_key text not null,
  workflow text not null,
  parameters text not null,
  expires integer not null
) strict, without rowid;
create index portal_offers_by_expiry on portal_offers (expires);
create index portal_offers_of on portal_offers (login_key, expires);

-- What a user chose to be mailed about; `user_key` is the user's identity. `choices` is JSON: by kind of notification,
-- [when it is mailed, since when, what applied before]. `digest` is 1 if one of them is or was mailed in digests.
create table notification_settings (
  user_key text primary key,
  choices text not null,
  language text,
  digest integer not null
) strict, without rowid;
create index notification_settings_with_digest on notification_settings (user_key) where digest = 1;

-- What a digest has reported to a user.
create table digest_entries (
  user_key text not null,
  entry text not null,
  at integer not null,
  primary key (user_key, entry)
) strict, without rowid;
create index digest_entries_by_time on digest_entries (at);

-- Audit ---------------------------------------------------------------------------------------------------------------

-- A record: what one call changed at a target, or a decision. Records are added and never changed. `changes` is a JSON
-- list of [id, kind, action, attribute, value or null]. `hash` is over the record and the hash of the one before it in
-- its chain. With a `context` the row is compact: what follows from other columns is not stored again.
create table audit (
  seq integer primary key autoincrement,
  id text not null unique,
  time integer not null,
  requestor text not null,
  requestor_key text not null,
  subject text not null,
  subject_key text not null,
  workflow_id text not null,
  workflow_name text not null,
  target text not null,
  request_id text,
  changes text not null,
  caller text,
  approval text,
  reason text,
  chain integer not null,
  chain_seq integer not null,
  hash text not null,
  context text
) strict;
create index audit_by_subject on audit (subject_key, seq);
create index audit_by_time on audit (time, seq);
create index audit_by_target on audit (target, time, seq);
create unique index audit_in_chain on audit (chain, chain_seq);
-- Decisions about tokens. All changes of such a record have one kind and action. Statistics read this index alone.
create index audit_tokens on audit (
  time,
  workflow_name,
  json_extract(changes, '$[0][1]'),
  json_extract(changes, '$[0][2]'),
  json_array_length(changes)
) where json_extract(changes, '$[0][1]') = 'token';
create index audit_by_requestor on audit (requestor_key, seq) where requestor_key <> '';
create index audit_by_workflow on audit (workflow_id, seq) where workflow_id <> '';
create index audit_by_request on audit (request_id, seq) where request_id is not null;

-- What many token records of a day share: the subject, and the start of the reason. `id` is a hash of all of it.
create table audit_contexts (
  id text primary key,
  day integer not null,
  subject text not null,
  shared text not null
) strict, without rowid;
create index audit_contexts_by_day on audit_contexts (day);

-- Every record whole, which is what hashes are over.
create view audit_rows as
select a.seq, a.id, a.time,
  case when a.context is null then a.requestor else c.subject end as requestor,
  case when a.context is null then a.requestor_key else c.subject end as requestor_key,
  case when a.context is null then a.subject else c.subject end as subject,
  case when a.context is null then a.subject_key else c.subject end as subject_key,
  case when a.context is null then a.workflow_id else a.id end as workflow_id,
  a.workflow_name, a.target,
  case when a.context is null then a.request_id else a.id end as request_id,
  case when a.context is null then a.changes
    else '[["' || a.id || '","token","issue","jti","' || a.id || '"]]' end as changes,
  a.caller, a.approval,
  case when a.context is null then a.reason else c.shared || a.reason end as reason,
  a.chain, a.chain_seq, a.hash,
  a.context, a.requestor_key as stored_requestor_key, a.subject_key as stored_subject_key,
  a.workflow_id as stored_workflow_id, a.request_id as stored_request_id
from audit a left join audit_contexts c on c.id = a.context;

-- A chain: number and hash of its last record, and of the last one that was pruned (`base_…`). `mac` authenticates both
-- with a key that is not in the database. `sealed_seq` is the last record that existed before the chain was sealed,
-- `broken_seq` the last record of a head that was found forged.
create table audit_chains (
  chain integer primary key,
  seq integer not null,
  hash text not null,
  base_seq integer not null,
  base_hash text not null,
  sealed_seq integer,
  sealed_at integer,
  broken_seq integer,
  key_id text,
  mac text
) strict;
-- From 16 on: decisions about tokens, which may be kept for another time than the rest.
insert into audit_chains (chain, seq, hash, base_seq, base_hash)
values (0, 0, '', 0, ''), (1, 0, '', 0, ''), (2, 0, '', 0, ''), (3, 0, '', 0, ''), (4, 0, '', 0, ''),
  (5, 0, '', 0, ''), (6, 0, '', 0, ''), (7, 0, '', 0, ''), (8, 0, '', 0, ''), (9, 0, '', 0, ''),
  (10, 0, '', 0, ''), (11, 0, '', 0, ''), (12, 0, '', 0, ''), (13, 0, '', 0, ''), (14, 0, '', 0, ''),
  (15, 0, '', 0, ''), (16, 0, '', 0, ''), (17, 0, '', 0, ''), (18, 0, '', 0, ''), (19, 0, '', 0, '');

-- How far an audit sink has come: `positions` is a JSON object of chain and number of the last record that it has.
create table audit_sinks (
  name text primary key,
  configured integer not null,
  positions text not null,
  owner text not null,
  lease_until integer not null,
  failures integer not null,
  retry_at integer not null
) strict;

-- Journal -------------------------------------------------------------------------------------------------------------

-- A recent call to an API, for its operator. `details` is a JSON object: runs, operations.
create table journal (
  seq integer primary key autoincrement,
  journal text not null,
  time integer not null,
  request_id text not null,
  caller text not null,
  method text not null,
  path text not null,
  status integer not null,
  keyword text,
  error text,
  millis integer not null,
  details text not null
) strict;
create index journal_in_order on journal (journal, seq);
-- Statistics read this index, and the rows only for callers, whose names may be too long for an index.
create index journal_by_time on journal (time, status, journal);

-- Reports -------------------------------------------------------------------------------------------------------------

-- Reports may read the views whose names start with `report_`, and nothing else. Times are ISO 8601 texts in UTC, which
-- all databases write, compare and sort alike. No view has secrets.
create view report_requests as
select id, name as workflow, state, subject, requestor, caller, reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', created / 1000.0, 'unixepoch') as started,
  strftime('%Y-%m-%dT%H:%M:%fZ', updated / 1000.0, 'unixepoch') as updated,
  strftime('%Y-%m-%dT%H:%M:%fZ', ended / 1000.0, 'unixepoch') as ended,
  strftime('%Y-%m-%dT%H:%M:%fZ', deadline / 1000.0, 'unixepoch') as deadline
from runs;

create view report_steps as
select run as request, number, attempt, task_type as type, label, outcome,
  strftime('%Y-%m-%dT%H:%M:%fZ', started / 1000.0, 'unixepoch') as started,
  strftime('%Y-%m-%dT%H:%M:%fZ', ended / 1000.0, 'unixepoch') as ended
from steps;

-- With the request of each approval, so that most reports need no other view.
create view report_approvals as
select a.id, a.run as request, a.label, a.state, a.decided_by, a.on_behalf_of, a.comment, a.escalation,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.opened / 1000.0, 'unixepoch') as opened,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.decided / 1000.0, 'unixepoch') as decided,
  r.name as workflow, r.subject, r.requestor, r.reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', r.created / 1000.0, 'unixepoch') as requested
from approvals a join runs r on r.id = a.run;

create view report_approvers as
select approval, approver from approval_approvers;

-- A change of an entry, an attribute or a group at a target; `number` is its place in its record.
create view report_changes as
select a.id as record, c.key as number, a.workflow_id as request, a.workflow_name as workflow, a.target, a.subject,
  a.requestor, a.caller, a.approval, a.reason,
  c.value ->> 1 as kind, c.value ->> 2 as action, c.value ->> 3 as attribute, c.value ->> 4 as value,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.time / 1000.0, 'unixepoch') as at
from audit a, json_each(a.changes) c
where c.value ->> 1 in ('entry', 'attribute', 'group');

create view report_logins as
select a.subject as login, a.workflow_name as chain, a.target as application,
  case c.value ->> 2 when 'issue' then 'login' when 'refuse' then 'refused' else 'logout' end as outcome,
  a.reason as details,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.time / 1000.0, 'unixepoch') as at
from audit a, json_each(a.changes) c
where c.value ->> 1 = 'session';

create view report_tokens as
select case when a.context is null then a.subject else b.subject end as subject, a.target as endpoint,
  case c.value ->> 2 when 'issue' then 'issued' else 'refused' end as outcome,
  case when a.context is null then a.reason else b.shared || a.reason end as details,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.time / 1000.0, 'unixepoch') as at
from audit a left join audit_contexts b on b.id = a.context, json_each(a.changes) c
where c.value ->> 1 = 'token';

create view report_grants as
select id, target, subject, kind, name, state, run as request,
  strftime('%Y-%m-%dT%H:%M:%fZ', granted / 1000.0, 'unixepoch') as granted,
  strftime('%Y-%m-%dT%H:%M:%fZ', expires / 1000.0, 'unixepoch') as expires
from grants;

create view report_delegations as
select login, deputy,
  strftime('%Y-%m-%dT%H:%M:%fZ', starts / 1000.0, 'unixepoch') as starts,
  strftime('%Y-%m-%dT%H:%M:%fZ', ends / 1000.0, 'unixepoch') as ends
from delegations;

-- The users of the embedded directories.
create view report_people as
select d.directory, e.name as login,
  (select a.value from attributes a where a.entry = e.pk and a.name_key = 'givenname' order by a.position limit 1) as first_name,
  (select a.value from attributes a where a.entry = e.pk and a.name_key = 'sn' order by a.position limit 1) as last_name,
  (select a.value from attributes a where a.entry = e.pk and a.name_key = 'displayname' order by a.position limit 1) as display_name,
  (select a.value from attributes a where a.entry = e.pk and a.name_key = 'mail' order by a.position limit 1) as email,
  strftime('%Y-%m-%dT%H:%M:%fZ', e.created / 1000.0, 'unixepoch') as created,
  strftime('%Y-%m-%dT%H:%M:%fZ', e.modified / 1000.0, 'unixepoch') as modified
from entries e join collections d on d.pk = e.collection
where d.kind = 'users';

create view report_memberships as
select d.directory, g.name as group_name, u.name as login
from memberships m
  join entries g on g.pk = m.group_entry
  join entries u on u.pk = m.user_entry
  join collections d on d.pk = g.collection;
