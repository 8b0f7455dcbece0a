-- When access that is asked for is to end: of a run as it was asked for, of an approval as it was when that was opened.
alter table runs add column access_ends bigint;
alter table approvals add column access_ends bigint;
