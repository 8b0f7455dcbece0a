-- What the own issuers keep of their flows: codes, grants, refresh tokens. Ids are hashes of bearer secrets; `data` is
-- sealed. `version` goes up with every change.
create table issuer_records (
  issuer text not null,
  model text not null,
  id text not null,
  grant_id text,
  user_code text,
  data text not null,
  version integer not null,
  consumed integer,
  expires integer not null,
  primary key (issuer, model, id)
) strict, without rowid;
create index issuer_records_of_grant on issuer_records (issuer, grant_id) where grant_id is not null;
create index issuer_records_by_user_code on issuer_records (issuer, user_code) where user_code is not null;
create index issuer_records_by_expiry on issuer_records (expires);
