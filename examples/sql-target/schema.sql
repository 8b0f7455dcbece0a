-- The tables of an application that knows nothing of Gatehouse. For SQLite; PostgreSQL needs other key columns only.
-- `autoincrement` keeps SQLite from giving the key of a deleted row to a new one: a SCIM client would take it for the old one.
create table accounts (
  account_id integer primary key autoincrement,
  login text not null unique,
  first_name varchar(100),
  last_name varchar(100),
  enabled boolean not null default true,
  revision integer not null default 1
);
create table account_emails (
  account_id integer not null references accounts (account_id),
  address varchar(320) not null,
  rank integer not null,
  primary key (account_id, address)
);
create table teams (
  team_id integer primary key autoincrement,
  title varchar(200) not null unique,
  revision integer not null default 1
);
create table team_accounts (
  team_id integer not null references teams (team_id),
  account_id integer not null references accounts (account_id),
  primary key (team_id, account_id)
);
insert into teams (title) values ('sales'), ('support');
