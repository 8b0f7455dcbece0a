-- The login of a session's owner in its compared form, for passwords whose directory entry is not known.
alter table sessions add column login_key text;
create index sessions_of_login on sessions (login_key);

-- Password reset links, and passwords that are being written. `token_hash` is null for a change without a link. `lease` is
-- the time until which the process that writes the password has to report the outcome.
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
