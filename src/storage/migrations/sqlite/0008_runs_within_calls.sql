-- A run that is executed within its call has no worker, and holds up no other run of its subject.
drop index runs_running;
create unique index runs_running on runs (subject_key) where state = 'running' and worker is not null;
