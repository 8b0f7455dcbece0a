-- Names that a group had until lately, by folded name, so that a change that was computed from them is told apart.
create table former_names (
  entry bigint not null references entries (pk) on delete cascade,
  key text collate "C" not null,
  time bigint not null,
  primary key (entry, key)
);
