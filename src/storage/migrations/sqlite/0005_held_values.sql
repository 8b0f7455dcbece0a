-- What an entry holds, in one piece, as it is read: a JSON list of [attribute name, [values]]. The rows of `attributes` are
-- what it is found by.
alter table entries add column held text not null default '[]';
update entries set held = (
    select json_group_array(json_array(one.name, json(one.held)))
    from (
      select min(a.name) as name, json_group_array(a.value) as held
      from (select * from attributes where entry = entries.pk order by name_key, position) a
      group by a.name_key
      order by a.name_key
    ) one
);
