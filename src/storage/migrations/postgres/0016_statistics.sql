-- What is counted over time is counted by an index that has the columns that are looked at, but for names of callers,
-- which may be longer than an index can hold.
create index runs_by_creation on runs (created, state, name);
create index approvals_by_opening on approvals (opened, escalation);
create index approvals_by_decision on approvals (decided, state, opened) where decided is not null;
create index journal_by_time on journal (time, status, journal);

-- Decisions about tokens. All changes of a record are of one kind and action where they are about tokens. What is computed
-- from a column is not read from an index here, so it is in none.
create index audit_tokens on audit (
  time
) where changes::jsonb -> 0 ->> 1 = 'token';
