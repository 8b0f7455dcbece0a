-- Each chain's head and base are authenticated by a MAC whose key is not in the database. `sealed_seq` is the last record
-- that was there before the chain was sealed, `broken_seq` the last record of a head that was found forged.
alter table audit_chains add column sealed_seq integer;
alter table audit_chains add column sealed_at integer;
alter table audit_chains add column broken_seq integer;
alter table audit_chains add column key_id text;
alter table audit_chains add column mac text;

-- How far each audit sink has come: `positions` is a JSON object of chain and number of the last record it has.
create table audit_sinks (
  name text primary key,
  configured integer not null,
  positions text not null,
  owner text not null,
  lease_until integer not null,
  failures integer not null,
  retry_at integer not null
) strict;
