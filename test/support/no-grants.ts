import type { GrantAccess } from '#sdk/grants.ts'

const absent = async (): Promise<never> => {
  throw new Error('no grants in this test')
}

/** For modules that are not to ask for access that ends. */
export const noGrants: GrantAccess = { ofSubject: absent, extend: absent }
