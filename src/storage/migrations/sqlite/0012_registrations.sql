-- Values that a registration holds until its run has put them where they are looked for; `key` is a hash.
create table reservations (
  key text primary key,
  owner text not null,
  run text,
  expires integer not null
) strict, without rowid;
create index reservations_by_owner on reservations (owner);
create index reservations_by_expiry on reservations (expires);

-- Registrations that wait for a mail address to be confirmed. `sealed` is encrypted.
create table pending_registrations (
  id text primary key,
  form text not null,
  token_hash text not null unique,
  sealed text not null,
  expires integer not null
) strict, without rowid;
create index pending_registrations_by_expiry on pending_registrations (expires);

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
