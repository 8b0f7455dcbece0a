-- A session is known to its owner by `public_id`, and to the applications that share a cookie by `context`. Those who
-- were logged in before log in again.
delete from sessions;
alter table sessions add column public_id text not null default '';
alter table sessions add column context text not null default '';
create index sessions_by_public_id on sessions (public_id);

-- Sessions, by their public id, that end when somebody outside says so.
create table session_marks (
  mark text not null,
  public_id text not null,
  expires integer not null,
  primary key (mark, public_id)
) strict, without rowid;
create index session_marks_by_expiry on session_marks (expires);

-- Logins under way. `browser` is the hash of a bearer secret; `data` is sealed.
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

-- Tries that failed, by the hash of an account or address.
create table login_failures (
  key text primary key,
  failures integer not null,
  locked_until integer not null,
  forget_at integer not null
) strict, without rowid;
create index login_failures_by_age on login_failures (forget_at);
