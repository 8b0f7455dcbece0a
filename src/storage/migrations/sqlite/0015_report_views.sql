-- What reports may read. Names of views start with `report_`, and no others do. Times are texts in ISO 8601, in UTC, so
-- that they are written, compared and sorted alike in all databases. Secrets are in none of them.
create view report_requests as
select id, name as workflow, state, subject, requestor, caller, reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', created / 1000.0, 'unixepoch') as started,
  strftime('%Y-%m-%dT%H:%M:%fZ', updated / 1000.0, 'unixepoch') as updated,
  strftime('%Y-%m-%dT%H:%M:%fZ', ended / 1000.0, 'unixepoch') as ended,
  strftime('%Y-%m-%dT%H:%M:%fZ', deadline / 1000.0, 'unixepoch') as deadline
from runs;

create view report_steps as
select run as request, number, attempt, task_type as type, label, outcome,
  strftime('%Y-%m-%dT%H:%M:%fZ', started / 1000.0, 'unixepoch') as started,
  strftime('%Y-%m-%dT%H:%M:%fZ', ended / 1000.0, 'unixepoch') as ended
from steps;

-- Each with what it is about, so that most reports need no other view.
create view report_approvals as
select a.id, a.run as request, a.label, a.state, a.decided_by, a.on_behalf_of, a.comment, a.escalation,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.opened / 1000.0, 'unixepoch') as opened,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.decided / 1000.0, 'unixepoch') as decided,
  r.name as workflow, r.subject, r.requestor, r.reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', r.created / 1000.0, 'unixepoch') as requested
from approvals a join runs r on r.id = a.run;

create view report_approvers as
select approval, approver from approval_approvers;

-- One row for each change of an entry, an attribute or a group at a target; `number` is its place in its record.
create view report_changes as
select a.id as record, c.key as number, a.workflow_id as request, a.workflow_name as workflow, a.target, a.subject,
  a.requestor, a.caller, a.approval, a.reason,
  c.value ->> 1 as kind, c.value ->> 2 as action, c.value ->> 3 as attribute, c.value ->> 4 as value,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.time / 1000.0, 'unixepoch') as at
from audit a, json_each(a.changes) c
where c.value ->> 1 in ('entry', 'attribute', 'group');

create view report_logins as
select a.subject as login, a.workflow_name as chain, a.target as application,
  case c.value ->> 2 when 'issue' then 'login' when 'refuse' then 'refused' else 'logout' end as outcome,
  a.reason as details,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.time / 1000.0, 'unixepoch') as at
from audit a, json_each(a.changes) c
where c.value ->> 1 = 'session';

create view report_tokens as
select a.subject, a.target as endpoint,
  case c.value ->> 2 when 'issue' then 'issued' else 'refused' end as outcome,
  a.reason as details,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.time / 1000.0, 'unixepoch') as at
from audit a, json_each(a.changes) c
where c.value ->> 1 = 'token';

create view report_grants as
select id, target, subject, kind, name, state, run as request,
  strftime('%Y-%m-%dT%H:%M:%fZ', granted / 1000.0, 'unixepoch') as granted,
  strftime('%Y-%m-%dT%H:%M:%fZ', expires / 1000.0, 'unixepoch') as expires
from grants;

create view report_delegations as
select login, deputy,
  strftime('%Y-%m-%dT%H:%M:%fZ', starts / 1000.0, 'unixepoch') as starts,
  strftime('%Y-%m-%dT%H:%M:%fZ', ends / 1000.0, 'unixepoch') as ends
from delegations;

-- People and groups of the embedded directories.
create view report_people as
select d.directory, e.name as login,
  (select a.value from attributes a where a.entry = e.pk and a.name_key = 'givenname' order by a.position limit 1) as first_name,
  (select a.value from attributes a where a.entry = e.pk and a.name_key = 'sn' order by a.position limit 1) as last_name,
  (select a.value from attributes a where a.entry = e.pk and a.name_key = 'displayname' order by a.position limit 1) as display_name,
  (select a.value from attributes a where a.entry = e.pk and a.name_key = 'mail' order by a.position limit 1) as email,
  strftime('%Y-%m-%dT%H:%M:%fZ', e.created / 1000.0, 'unixepoch') as created,
  strftime('%Y-%m-%dT%H:%M:%fZ', e.modified / 1000.0, 'unixepoch') as modified
from entries e join collections d on d.pk = e.collection
where d.kind = 'users';

create view report_memberships as
select d.directory, g.name as group_name, u.name as login
from memberships m
  join entries g on g.pk = m.group_entry
  join entries u on u.pk = m.user_entry
  join collections d on d.pk = g.collection;
