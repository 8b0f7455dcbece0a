import type { Directory } from '#identity/directory.ts'
import type { ChangePreview, PreviewStep } from '#sdk/contract/preview.ts'
import type { Target } from '#sdk/target/target.ts'
import type { TaskContext, TaskOutcome, WorkflowTask } from '#sdk/workflow/workflow-task.ts'

/** The planned steps, as in the contract, with times that are not yet text. */
export interface Preview extends Omit<ChangePreview, 'steps'> {
  readonly steps: readonly WithDates<PreviewStep>[]
}
type WithDates<S> = { readonly [K in keyof S]: K extends 'expires' | 'until' ? Date : S[K] }

/** The preview with its times as text. */
export const shownPreview = ({ steps, whole }: Preview): ChangePreview => ({ steps: steps.map(shownStep), whole })

function shownStep(step: Preview['steps'][number]): PreviewStep {
  if (step.kind === 'end') return { ...step, expires: step.expires.toISOString() }
  return step.kind === 'wait' ? { ...step, until: step.until.toISOString() } : step
}

type Outcome = Promise<TaskOutcome> | TaskOutcome

/** A task that only changes its context, so its preview runs it. */
export const onContext = (run: (context: TaskContext) => Outcome): WorkflowTask => ({ run, preview: run })

/** A task that uses a target: the real one, or that of the preview. */
export const onTarget = (
  name: string,
  target: Target,
  act: (target: Target, context: TaskContext) => Outcome,
): WorkflowTask => ({
  run: (context) => act(target, context),
  preview: (context) => act(context.target(name), context),
})

/** A task that reads the directory. */
export const onDirectory = (
  directory: Pick<Directory, 'search' | 'entry'>,
  act: (directory: Pick<Directory, 'search' | 'entry'>, context: TaskContext) => Outcome,
): WorkflowTask => ({
  run: (context) => act(directory, context),
  preview: (context) => act(context.directory, context),
})
