import { CallFailure } from './call-failure.ts'

/**
 * Makes a change. Where nobody knows what came of it, `isDone` looks; only what is seen to be done counts as done, and
 * everything else is the failure that it was. `certain` says that this change itself was refused, since
 * the like is there.
 */
export async function settled(
  change: () => Promise<void>,
  isDone: (certain: boolean) => Promise<boolean>,
): Promise<void> {
  try {
    await change()
  } catch (error) {
    if (!(error instanceof CallFailure) || !(error.mayBeDone || error.code === 'CONFLICT')) throw error
    const done = await isDone(!error.mayBeDone).catch(() => false)
    if (!done) throw error
  }
}
