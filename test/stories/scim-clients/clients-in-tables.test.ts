import { throughDirectory } from '#testing/scim/scim-lookups.ts'
import { inPostgresTables, inSqliteTables } from '#testing/scim/scim-on-sql.ts'
import { describeSystem, shortSystemSuites } from './suites.ts'

describeSystem(throughDirectory)
describeSystem(inSqliteTables)
// Only the dialect differs, which the conformance tests of the target have in full.
describeSystem(inPostgresTables, { suites: shortSystemSuites })
