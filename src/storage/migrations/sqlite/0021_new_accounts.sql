-- An approval for a run that may only create accounts: approvers are shown what was submitted, not an account of that login.
alter table approvals add column new_account integer not null default 0;

-- Registrations that are under way are bound to it, too. A form about its caller has the caller as subject and requester.
update approvals set new_account = 1 where state = 'open' and run in (
  select id from runs where touched = 0 and requestor_key <> subject_key and data like '{"format":1,%'
    and id in (select run from reservations where run is not null)
);
update runs set data = '{"newAccount":{"unique":[],"created":[]},' || substr(data, 2)
  where state in ('ready', 'waiting', 'incident') and touched = 0 and requestor_key <> subject_key
    and data like '{"format":1,%' and id in (select run from reservations where run is not null);
