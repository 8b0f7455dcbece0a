-- Groups that are direct members of other groups of the same directory. No group contains itself, not through others either.
create table nested_groups (
  group_entry bigint not null references entries (pk) on delete cascade,
  member_entry bigint not null references entries (pk) on delete cascade,
  primary key (group_entry, member_entry),
  check (group_entry <> member_entry)
);
create index nested_groups_of_member on nested_groups (member_entry, group_entry);
