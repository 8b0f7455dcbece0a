import { createRegistry } from '#kernel/registry.ts'
import directory from '#modules/dynamic-workflows/directory/directory.ts'
import javascript from '#modules/dynamic-workflows/javascript/javascript.ts'
import sql from '#modules/dynamic-workflows/sql/sql.ts'

export const dynamicWorkflows = createRegistry('dynamic workflow', [directory, javascript, sql])
