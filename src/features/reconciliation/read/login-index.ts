import type { AccountName } from '#features/reconciliation/plan/difference.ts'
import { ComparisonFile } from './comparison-file.ts'
import { readPeople } from './read-people.ts'
import type { ComparedSystems, PersonMapping } from './systems.ts'

/** How long the logins of a source are reused, so that one apply does not read it for each of its rows. */
const reusedMillis = 60_000

const files = new WeakMap<PersonMapping, Promise<ComparisonFile>>()

/**
 * The people who get this login at the target, for mappings that can't be asked backwards. Reads the whole source, unless it
 * was read within the last minute.
 */
export async function peopleWithLogin(systems: ComparedSystems, login: string): Promise<readonly AccountName[]> {
  const { mapping } = systems
  const file = files.get(mapping) ?? readLogins(systems)
  files.set(mapping, file)
  return (await file).peopleWithLogin(login)
}

async function readLogins(systems: ComparedSystems): Promise<ComparisonFile> {
  const { mapping, folder, signal } = systems
  const file = new ComparisonFile([], true, folder)
  try {
    for await (const _ of readPeople(file, systems)) signal?.throwIfAborted()
  } catch (error) {
    files.delete(mapping)
    file.close()
    throw error
  }
  setTimeout(() => {
    files.delete(mapping)
    file.close()
  }, reusedMillis).unref()
  return file
}
