-- Workflow definitions as runs are pinned to them. `body` is JSON.
create table definitions (
  hash text primary key,
  name text not null,
  body text not null,
  created integer not null
) strict, without rowid;

-- Runs that outlive the call that started them. `seq` is the order within a subject. `data`, `signal`, `incident` and
-- `cancel` are JSON, `secret` is encrypted. `fence` grows with every claim; a commit must know it.
create table runs (
  seq integer primary key autoincrement,
  id text not null unique,
  name text not null,
  definition text not null,
  state text not null check (state in ('ready', 'running', 'waiting', 'incident', 'completed', 'failed', 'cancelled')),
  subject text not null,
  subject_key text not null,
  requestor text not null,
  requestor_key text not null,
  caller text,
  reason text,
  request_id text,
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
create index runs_ended on runs (ended) where ended is not null;
-- Whatever two workers think, of one subject one run is executed at a time.
create unique index runs_running on runs (subject_key) where state = 'running';

-- What was executed, attempt by attempt.
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

-- `rules` and `data` are JSON. A decision is an update of a row that is still open.
create table approvals (
  id text primary key,
  run text not null references runs (id) on delete cascade,
  step integer not null,
  label text not null,
  state text not null check (state in ('open', 'approved', 'denied', 'cancelled')),
  opened integer not null,
  decided integer,
  decided_by text,
  on_behalf_of text,
  comment text,
  allow_self integer not null,
  rules text not null,
  data text not null,
  escalation integer not null,
  version integer not null
) strict, without rowid;
create index approvals_of_run on approvals (run, id);
create index approvals_by_state on approvals (state, id);

-- Who may decide. `open` is 1 as long as the approval is, so that one approver's list is one range of the index.
create table approval_approvers (
  approval text not null references approvals (id) on delete cascade,
  approver_key text not null,
  approver text not null,
  open integer not null,
  primary key (approval, approver_key)
) strict, without rowid;
create index approval_approvers_open on approval_approvers (approver_key, open, approval);

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

-- Mails to be sent, and that they were. The text goes when the mail has gone.
create table mails (
  id text primary key,
  run text,
  step integer,
  recipient text not null,
  subject text not null,
  body text not null,
  html text,
  state text not null check (state in ('queued', 'sent', 'failed')),
  attempt integer not null,
  due integer not null,
  fence integer not null,
  lease_until integer not null,
  error text,
  updated integer not null
) strict, without rowid;
create index mails_due on mails (state, due, id);
create index mails_ended on mails (updated) where state <> 'queued';

-- Access that ends by itself.
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
  state text not null check (state in ('active', 'revoked'))
) strict, without rowid;
create unique index grants_active on grants (target, subject_key, kind, name_key) where state = 'active';
create index grants_due on grants (expires, id) where state = 'active';
create index grants_of_subject on grants (subject_key, state, id);

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

-- One row per due time of a scheduled job: who inserts it runs it.
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

-- Calls that are answered as the first time when they come again. `lease_until` is null when that lasts.
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

-- Each audit row is in a chain: its hash is over the row and the hash of the one before it.
alter table audit add column caller text;
alter table audit add column approval text;
alter table audit add column reason text;
alter table audit add column chain integer;
alter table audit add column chain_seq integer;
alter table audit add column hash text;
create unique index audit_in_chain on audit (chain, chain_seq);

-- The last row of each chain, and the last one that retention took away. Chain -1 is what there was before chains.
create table audit_chains (
  chain integer primary key,
  seq integer not null,
  hash text not null,
  base_seq integer not null,
  base_hash text not null
) strict;
insert into audit_chains (chain, seq, hash, base_seq, base_hash)
select -1, coalesce(max(seq), 0), '', 0, '' from audit;
insert into audit_chains (chain, seq, hash, base_seq, base_hash)
values (0, 0, '', 0, ''), (1, 0, '', 0, ''), (2, 0, '', 0, ''), (3, 0, '', 0, ''),
  (4, 0, '', 0, ''), (5, 0, '', 0, ''), (6, 0, '', 0, ''), (7, 0, '', 0, ''),
  (8, 0, '', 0, ''), (9, 0, '', 0, ''), (10, 0, '', 0, ''), (11, 0, '', 0, ''),
  (12, 0, '', 0, ''), (13, 0, '', 0, ''), (14, 0, '', 0, ''), (15, 0, '', 0, '');
