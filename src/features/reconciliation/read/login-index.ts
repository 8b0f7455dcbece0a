import { ComparisonFile } from './comparison-file.ts'
import { readPeople } from './read-people.ts'
import type { ComparedSystems } from './systems.ts'

/** How long the logins of a source are reused, so that one apply does not read it for each of its rows. */
const reusedMillis = 60_000

/** By the signal of a worker's turn, which never relies on what was read before it began. */
const files = new WeakMap<object, Promise<ComparisonFile>>()

/**
 * The people of the source with their logins at the target, for mappings that can't be asked backwards. Reads the whole
 * source, unless the same turn read it within the last minute.
 */
export function loginIndex(systems: ComparedSystems): Promise<ComparisonFile> {
  const turn = systems.signal ?? systems
  const file = files.get(turn) ?? readLogins(systems, turn)
  files.set(turn, file)
  return file
}

async function readLogins(systems: ComparedSystems, turn: object): Promise<ComparisonFile> {
  const { folder, signal } = systems
  const file = new ComparisonFile([], true, folder)
  try {
    for await (const _ of readPeople(file, systems)) signal?.throwIfAborted()
  } catch (error) {
    files.delete(turn)
    file.close()
    throw error
  }
  setTimeout(() => {
    files.delete(turn)
    file.close()
  }, reusedMillis).unref()
  return file
}
