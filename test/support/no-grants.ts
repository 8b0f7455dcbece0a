import type { GrantAccess } from '#sdk/workflow/grants.ts'

const absent = async (): Promise<never> => {
  throw new Error('no grants in this test')
}

/** For modules that must not use grants. */
export const noGrants: GrantAccess = { ofSubject: absent, extend: absent }
