import { createRegistry } from '#kernel/registry.ts'
import database from '#modules/directory-inserts/database/database.ts'
import ldap from '#modules/directory-inserts/ldap/ldap.ts'
import target from '#modules/directory-inserts/target/target.ts'

/** Add a directory insert: one import above, one line below. */
export const directoryInserts = createRegistry('directory insert', [database, ldap, target])
