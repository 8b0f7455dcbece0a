import { Attributes, isSecretAttribute } from '#identity/attributes.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'

/** Replaces a secret of the request, also in values that are built from it. */
const mask = '••••••'
/** Replaces a stored secret. Differs from `mask`, since a secret of the request would replace the stored one. */
const storedMask = '•••••'

/** Masks secrets that were read from a target or the directory. */
export const maskStored = (attributes: Attributes): Attributes => masked(attributes, storedMask)

/** Masks every secret of a run. */
export function maskRun(state: RunProgress): void {
  for (const user of [state.user, ...state.frames.flatMap((frame) => frame.user ?? [])]) maskUser(user)
  for (const key of state.request.keys()) {
    if (isSecretAttribute(key)) state.request.set(key, mask)
  }
}

/** Keeps the number of values, so that tasks which test for a value find one. */
const masked = (attributes: Attributes, text: string): Attributes =>
  Attributes.from(
    [...attributes].map(([name, values]) => [name, isSecretAttribute(name) ? values.map(() => text) : values]),
  )

function maskUser(user: WorkflowUser): void {
  user.attributes = masked(user.attributes, mask)
  if (user.password !== undefined) user.password = mask
}
