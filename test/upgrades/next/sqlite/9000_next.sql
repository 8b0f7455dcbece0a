-- Everything that a migration may do while the version before it serves.
create table next_things (id text primary key, entry integer references entries (pk) on delete cascade) strict, without rowid;
alter table entries add column next_shade text;
alter table audit add column next_origin text;
alter table runs add column next_rank integer not null default 0;
alter table sessions add column next_device text;
create index next_by_shade on entries (next_shade);
update runs set next_rank = attempt;
