import { throughDirectory } from '#testing/scim/scim-lookups.ts'
import { inPostgresTables, inSqliteTables } from './scim-on-sql.ts'
import { describeSystem, pagesAndGroups } from './suites.ts'

describeSystem(throughDirectory)
describeSystem(inSqliteTables, { suites: pagesAndGroups })
describeSystem(inPostgresTables, { suites: pagesAndGroups })
