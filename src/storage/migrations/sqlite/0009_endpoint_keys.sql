-- The keys of a token endpoint: one row holds the whole ring, which is changed by comparing the version.
create table endpoint_keys (
  endpoint text primary key,
  version integer not null,
  ring text not null,
  publications text not null,
  worker text,
  lease_until integer not null,
  updated integer not null
) strict, without rowid;
