import type { OwnAccess } from '#sdk/workflow/grants.ts'

const absent = async (): Promise<never> => {
  throw new Error('no grants in this test')
}

/** For modules that must not use grants. */
export const noGrants: OwnAccess = {
  ofSubject: absent,
  extend: absent,
  get: absent,
  endedOf: absent,
  groupOrigins: absent,
  giveBack: absent,
}
