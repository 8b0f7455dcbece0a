-- Second factors, by the name of the entry whose they are. `data` is sealed; `counter` tells codes that were used.
create table second_factors (
  id text primary key,
  owner text not null,
  place integer not null,
  kind text not null,
  name text not null,
  data text not null,
  counter integer not null,
  created integer not null,
  last_used integer,
  unique (owner, place)
) strict, without rowid;

-- What stands in for a lost second factor, once, as hashes.
create table recovery_codes (
  owner text not null,
  hash text not null,
  primary key (owner, hash)
) strict, without rowid;
