import { inParallel } from '#kernel/in-parallel.ts'
import type { ComparisonFile } from './comparison-file.ts'
import type { ComparedSystems } from './systems.ts'
import { readWhole } from './whole-pages.ts'

const width = 8

/** Reads the source to its end into the file. */
export const readPeople = (
  file: ComparisonFile,
  { source, mapping }: Pick<ComparedSystems, 'source' | 'mapping'>,
): AsyncGenerator<void, boolean> =>
  readWhole({
    what: source.what,
    read: (after) => source.page(after, mapping.personAttributes),
    count: () => source.count(),
    add: async (users) => file.addPeople(await inParallel(users, width, (user) => mapping.person(user))),
  })
