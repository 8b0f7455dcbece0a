import type { RunAccess } from '#workflows/record/run-access.ts'

const absent = async (): Promise<never> => {
  throw new Error('no stored runs in this test')
}

/** For modules that must not use runs. */
export const noRuns: RunAccess = {
  start: absent,
  settle: absent,
  hasUnfinished: async () => false,
  takeFinished: absent,
  refuse: absent,
  get: absent,
  list: absent,
  ahead: absent,
  parametersOf: absent,
  steps: absent,
  retry: absent,
  skip: absent,
  cancel: absent,
  withdraw: absent,
}
