import type { Directory } from '#identity/directory.ts'
import type { Target } from '#sdk/target/target.ts'
import type { TaskContext, TaskOutcome, WorkflowTask } from '#sdk/workflow/workflow-task.ts'

type Outcome = Promise<TaskOutcome> | TaskOutcome

/** A task that works on nothing but its context: to foresee it is to run it. */
export const onPaper = (run: (context: TaskContext) => Outcome): WorkflowTask => ({ run, foresee: run })

/** A task that works on a target, which it is given: the real one, or the one on paper. */
export const onTarget = (
  name: string,
  target: Target,
  act: (target: Target, context: TaskContext) => Outcome,
): WorkflowTask => ({
  run: (context) => act(target, context),
  foresee: (context) => act(context.target(name), context),
})

/** A task that reads the directory. */
export const onDirectory = (
  directory: Pick<Directory, 'search' | 'entry'>,
  act: (directory: Pick<Directory, 'search' | 'entry'>, context: TaskContext) => Outcome,
): WorkflowTask => ({
  run: (context) => act(directory, context),
  foresee: (context) => act(context.directory, context),
})
