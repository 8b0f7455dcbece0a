import type { StepEffects } from '#sdk/workflow/workflow-task.ts'

/** For tasks that must not use effects. */
export const noEffects: StepEffects = {
  mail: () => {
    throw new Error('no mail in this test')
  },
  grant: () => {
    throw new Error('no grants in this test')
  },
  start: () => {
    throw new Error('no runs in this test')
  },
  beginPassword: () => {
    throw new Error('no passwords in this test')
  },
}
