import { createRegistry } from '#kernel/registry.ts'
import database from '#modules/value-sources/database/database.ts'
import directory from '#modules/value-sources/directory/directory.ts'
import empty from '#modules/value-sources/empty/empty.ts'
import javaScript from '#modules/value-sources/javascript/javascript.ts'

/** To add a value source, add one import above and one line below. */
export const valueSources = createRegistry('value source', [database, directory, empty, javaScript])
