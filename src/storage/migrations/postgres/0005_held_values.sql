-- What an entry holds, in one piece, as it is read: a JSON list of [attribute name, [values]]. The rows of `attributes` are
-- what it is found by.
alter table entries add column held text not null default '[]';
update entries set held = one.held
from (
    select entry, json_agg(json_build_array(name, held) order by name_key)::text as held
    from (
      select entry, name_key, min(name) as name, json_agg(value order by position) as held
      from attributes
      group by entry, name_key
    ) each_name
    group by entry
) one
where one.entry = entries.pk;
