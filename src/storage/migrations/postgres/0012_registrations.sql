-- Values that a registration holds until its run has put them where they are looked for; `key` is a hash.
create table reservations (
  key text collate "C" primary key,
  owner text collate "C" not null,
  run text collate "C",
  expires bigint not null
);
create index reservations_by_owner on reservations (owner);
create index reservations_by_expiry on reservations (expires);

-- Registrations that wait for a mail address to be confirmed. `sealed` is encrypted.
create table pending_registrations (
  id text collate "C" primary key,
  form text collate "C" not null,
  token_hash text collate "C" not null unique,
  sealed text collate "C" not null,
  expires bigint not null
);
create index pending_registrations_by_expiry on pending_registrations (expires);

create table invitations (
  id text collate "C" primary key,
  form text collate "C" not null,
  token_hash text collate "C" not null unique,
  email text collate "C" not null,
  attributes text collate "C" not null,
  invited_by text collate "C" not null,
  state text collate "C" not null check (state in ('open', 'accepted', 'revoked')),
  created bigint not null,
  expires bigint not null,
  sent bigint not null
);
create index invitations_by_form on invitations (form, id);
create index invitations_by_expiry on invitations (expires);
