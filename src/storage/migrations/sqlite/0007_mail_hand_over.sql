-- When the last attempt began to hand the mail over. Queued, with a time and held by nobody, a mail may have arrived or not.
alter table mails add column handed_over integer;
create index mails_handed_over on mails (lease_until) where handed_over is not null and state = 'queued';
