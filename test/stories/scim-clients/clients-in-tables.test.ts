import { throughDirectory } from '#testing/scim/scim-lookups.ts'
import { inPostgresTables, inSqliteTables } from '#testing/scim/scim-on-sql.ts'
import { describeSystem } from './suites.ts'

for (const system of [throughDirectory, inSqliteTables, inPostgresTables]) describeSystem(system)
