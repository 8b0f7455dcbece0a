import type { RunHead } from '#sdk/workflow/run-head.ts'

export const runHead = (given: Partial<RunHead> = {}): RunHead => ({
  id: 'run-1',
  workflow: 'create-user',
  definition: 'hash-1',
  subject: 'jjackson',
  requester: 'alice',
  who: {},
  ...given,
})
