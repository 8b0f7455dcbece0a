-- Second factors, by the name of the entry whose they are. `data` is sealed; `counter` tells codes that were used.
create table second_factors (
  id text collate "C" primary key,
  owner text collate "C" not null,
  place integer not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  data text collate "C" not null,
  counter bigint not null,
  created bigint not null,
  last_used bigint,
  unique (owner, place)
);

-- What stands in for a lost second factor, once, as hashes.
create table recovery_codes (
  owner text collate "C" not null,
  hash text collate "C" not null,
  primary key (owner, hash)
);
