-- What people marked in the portal, and what they used of it last.
create table portal_marks (
  login_key text collate "C" not null,
  list text collate "C" not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  at bigint not null,
  primary key (login_key, list, kind, name)
);
create index portal_marks_by_time on portal_marks (login_key, list, at);

-- Parameters that somebody was offered a workflow with; the reference they hold is kept as its hash.
create table portal_offers (
  reference text collate "C" primary key,
  login_key text collate "C" not null,
  workflow text collate "C" not null,
  parameters text collate "C" not null,
  expires bigint not null
);
create index portal_offers_by_expiry on portal_offers (expires);
create index portal_offers_of on portal_offers (login_key, expires);
