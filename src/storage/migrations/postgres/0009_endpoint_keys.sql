-- The keys of a token endpoint: one row holds the whole ring, which is changed by comparing the version.
create table endpoint_keys (
  endpoint text collate "C" primary key,
  version bigint not null,
  ring text collate "C" not null,
  publications text collate "C" not null,
  worker text collate "C",
  lease_until bigint not null,
  updated bigint not null
);
