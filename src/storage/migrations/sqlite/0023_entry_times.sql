-- Users and groups are found, and listed in order, by when they were created and last changed.
create index entries_by_modified on entries (collection, modified, pk);
create index entries_by_created on entries (collection, created, pk);
