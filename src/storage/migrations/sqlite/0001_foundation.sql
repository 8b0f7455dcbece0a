-- Users and groups of the embedded directories. A directory has two collections: its users and its groups.
create table collections (
  pk integer primary key,
  directory text not null,
  kind text not null check (kind in ('users', 'groups')),
  unique (directory, kind)
) strict;

-- How many entries a collection has, so that nobody has to count them: the sum of its slots.
create table collection_sizes (
  collection integer not null references collections (pk) on delete cascade,
  slot integer not null,
  size integer not null,
  primary key (collection, slot)
) strict, without rowid;

-- A user or a group. `key` is the name in folded letter case; `number` its value where the name is a whole number.
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
  unique (collection, key)
) strict;
create index entries_in_order on entries (collection, pk);

-- One row per value. `value_key` is the folded value, or its beginning where it is long; then `long_key` has all of it.
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

create table memberships (
  group_entry integer not null references entries (pk) on delete cascade,
  user_entry integer not null references entries (pk) on delete cascade,
  primary key (group_entry, user_entry)
) strict, without rowid;
create index memberships_of_user on memberships (user_entry, group_entry);

-- `id` is the hash of a bearer secret. Times are milliseconds since 1970.
create table sessions (
  id text primary key,
  application text not null,
  user_id text not null,
  user_key text not null,
  data text not null,
  created integer not null,
  touched integer not null,
  idle_seconds integer not null,
  ends integer,
  expires integer not null
) strict, without rowid;
create index sessions_of_user on sessions (user_key);
create index sessions_by_expiry on sessions (expires);

-- What one call changed at a target. Rows are added and never changed. `seq` is their order, and each holds what it was
-- given as it was given, so that a later column can be a digest over the row and its predecessor's digest.
-- `changes` is a JSON list of [id, kind, action, attribute, value or null].
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
  changes text not null
) strict;
create index audit_by_subject on audit (subject_key, seq);
create index audit_by_requestor on audit (requestor_key, seq);
create index audit_by_workflow on audit (workflow_id, seq);
create index audit_by_time on audit (time);
