import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { Attributes, isSecretAttribute } from '#identity/attributes.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'

/** Stands for a secret of the request, so that whatever is made of one shows this. */
const mask = '••••••'
/** Stands for a secret that somebody has already: another text, since one of the request is to replace it. */
const heldMask = '•••••'

/** What a target or the directory holds, without its secrets. */
export const maskHeld = (attributes: Attributes): Attributes => masked(attributes, heldMask)

/** Takes every secret out of a run that is not to be carried out. */
export function maskRun(state: RunProgress): void {
  for (const user of [state.user, ...state.frames.flatMap((frame) => frame.user ?? [])]) maskUser(user)
  for (const key of state.request.keys()) {
    if (isSecretAttribute(key)) state.request.set(key, mask)
  }
}

/** With as many values, so that tasks which ask whether there is one find it. */
const masked = (attributes: Attributes, text: string): Attributes =>
  Attributes.from(
    [...attributes].map(([name, values]) => [name, isSecretAttribute(name) ? values.map(() => text) : values]),
  )

function maskUser(user: WorkflowUser): void {
  user.attributes = masked(user.attributes, mask)
  if (user.password !== undefined) user.password = mask
}
