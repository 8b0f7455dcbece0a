import type { DirectoryEntry, InsertEntry } from '#identity/directory.ts'
import { entryIdentity } from '#identity/identity.ts'

/** The entry in the directory's form, for fakes of the directory. */
export const directoryEntry = (entry: InsertEntry): DirectoryEntry => ({
  ...entry,
  identity: entryIdentity('test', entry.id ?? entry.dn.key),
})
