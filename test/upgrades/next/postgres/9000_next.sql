-- Everything that a migration may do while the version before it serves.
create table next_things (id text collate "C" primary key, entry bigint references entries (pk) on delete cascade);
alter table entries add column next_shade text collate "C";
alter table audit add column next_origin text collate "C";
alter table runs add column next_rank bigint not null default 0;
alter table sessions add column next_device text collate "C";
create index next_by_shade on entries (next_shade);
update runs set next_rank = attempt;
