-- Sessions belong to identities from now on, which those from before do not name: their users log in again.
delete from sessions;
