-- The latest calls to each API, for its operator. `details` is a JSON object: runs, operations.
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

-- Streams of events: the number of the latest event, who delivers now and until when, and how the receiver fared.
create table event_streams (
  name text primary key,
  latest integer not null,
  owner text not null,
  lease_until integer not null,
  failures integer not null,
  retry_at integer not null
) strict, without rowid;

-- Events that no receiver has acknowledged yet. `number` is their order; `claims` a token before it is signed.
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
