-- What people marked in the portal, and what they used of it last.
create table portal_marks (
  login_key text not null,
  list text not null,
  kind text not null,
  name text not null,
  at integer not null,
  primary key (login_key, list, kind, name)
) strict, without rowid;
create index portal_marks_by_time on portal_marks (login_key, list, at);

-- Parameters that somebody was offered a workflow with; the reference they hold is kept as its hash.
create table portal_offers (
  reference text primary key,
  login_key text not null,
  workflow text not null,
  parameters text not null,
  expires integer not null
) strict, without rowid;
create index portal_offers_by_expiry on portal_offers (expires);
create index portal_offers_of on portal_offers (login_key, expires);
