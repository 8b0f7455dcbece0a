-- Which Notifier sends the mail; the default one when absent.
alter table mails add column notifier text;
