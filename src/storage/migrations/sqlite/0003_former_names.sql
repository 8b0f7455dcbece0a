-- Names that a group had until lately, by folded name, so that a change that was computed from them is told apart.
create table former_names (
  entry integer not null references entries (pk) on delete cascade,
  key text not null,
  time integer not null,
  primary key (entry, key)
) strict, without rowid;
