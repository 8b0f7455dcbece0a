import { entryIdentity, type UserRef } from '#identity/identity.ts'

/** A user of `MemoryPeople`, or of a store under test. */
export const userRef = (login: string): UserRef => ({
  identity: entryIdentity('people', `id of ${login.toLowerCase()}`),
  login,
})
