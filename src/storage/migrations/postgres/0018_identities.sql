-- Sessions belong to identities from now on, which those from before do not name: their users log in again.
delete from sessions;

-- Existing rows keep the login as the identity `login:<key>`, which belongs to the user who has that login.
alter table runs add column requestor_identity text;
alter table runs add column caller_identity text;
alter table runs add column subject_identity text;
update runs set requestor_identity = 'login:' || requestor_key, subject_identity = 'login:' || subject_key;
update runs set caller_identity = 'login:' || lower(caller) where caller is not null;
create index runs_by_requestor_identity on runs (requestor_identity, seq);
create index runs_by_subject_identity on runs (subject_identity, seq);

alter table approvals add column decided_identity text;
update approval_approvers set approver_key = 'login:' || approver_key;
update delegations set login_key = 'login:' || login_key, deputy_key = 'login:' || deputy_key;
update portal_marks set login_key = 'login:' || login_key;
delete from portal_offers;
