-- Each chain's head and base are authenticated by a MAC whose key is not in the database. `sealed_seq` is the last record
-- that was there before the chain was sealed, `broken_seq` the last record of a head that was found forged.
alter table audit_chains add column sealed_seq bigint;
alter table audit_chains add column sealed_at bigint;
alter table audit_chains add column broken_seq bigint;
alter table audit_chains add column key_id text collate "C";
alter table audit_chains add column mac text collate "C";

-- How far each audit sink has come: `positions` is a JSON object of chain and number of the last record it has.
create table audit_sinks (
  name text collate "C" primary key,
  configured bigint not null,
  positions text not null,
  owner text collate "C" not null,
  lease_until bigint not null,
  failures bigint not null,
  retry_at bigint not null
);
