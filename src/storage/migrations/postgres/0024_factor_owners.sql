-- Second factors belong to an identity, whatever the entry is called. The name under which it last used one finds them
-- for an administrator. Rows from before have the name's key as their owner, and get their identity at the next login.
alter table second_factors add column owner_name text;
create index second_factors_by_name on second_factors (owner_name);
