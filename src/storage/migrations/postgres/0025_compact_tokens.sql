-- What many token rows of a day have in common, stored once: the subject, and the start of their reason. `id` is a hash of
-- all of it.
create table audit_contexts (
  id text collate "C" primary key,
  day bigint not null,
  subject text collate "C" not null,
  shared text collate "C" not null
);
create index audit_contexts_by_day on audit_contexts (day);

-- A row with a context is compact: what follows from other columns is not stored again. audit_rows has every row whole,
-- which is also what hashes are over.
alter table audit add column context text collate "C";
drop index audit_by_requestor;
create index audit_by_requestor on audit (requestor_key, seq) where requestor_key <> '';
drop index audit_by_workflow;
create index audit_by_workflow on audit (workflow_id, seq) where workflow_id <> '';

create view audit_rows as
select a.seq, a.id, a.time,
  case when a.context is null then a.requestor else c.subject end as requestor,
  case when a.context is null then a.requestor_key else c.subject end as requestor_key,
  case when a.context is null then a.subject else c.subject end as subject,
  case when a.context is null then a.subject_key else c.subject end as subject_key,
  case when a.context is null then a.workflow_id else a.id end as workflow_id,
  a.workflow_name, a.target,
  case when a.context is null then a.request_id else a.id end as request_id,
  case when a.context is null then a.changes
    else '[["' || a.id || '","token","issue","jti","' || a.id || '"]]' end as changes,
  a.caller, a.approval,
  case when a.context is null then a.reason else c.shared || a.reason end as reason,
  a.chain, a.chain_seq, a.hash,
  a.context, a.requestor_key as stored_requestor_key, a.subject_key as stored_subject_key,
  a.workflow_id as stored_workflow_id
from audit a left join audit_contexts c on c.id = a.context;

create or replace view report_tokens as
select case when a.context is null then a.subject else b.subject end as subject, a.target as endpoint,
  case c.value ->> 2 when 'issue' then 'issued' else 'refused' end as outcome,
  case when a.context is null then a.reason else b.shared || a.reason end as details,
  to_char(to_timestamp(a.time / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at
from audit a left join audit_contexts b on b.id = a.context, jsonb_array_elements(a.changes::jsonb) with ordinality as c (value, number)
where c.value ->> 1 = 'token';

-- Decisions about tokens have chains of their own, so that they can be kept for another time than the rest.
insert into audit_chains (chain, seq, hash, base_seq, base_hash)
values (16, 0, '', 0, ''), (17, 0, '', 0, ''), (18, 0, '', 0, ''), (19, 0, '', 0, '');
