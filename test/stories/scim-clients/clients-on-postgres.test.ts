import { describe } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { scimServers } from '#testing/scim/scim-story.ts'
import { nestedGroupsStory, withSharedNames } from './nested-groups.ts'
import { describeSuites, describeVersions, systemSuites } from './suites.ts'

describe.skipIf(postgresUrl() === '')('SCIM clients of two processes on one PostgreSQL', () => {
  const servers = scimServers({ lookups: withSharedNames, databaseUrl: freshSchema, processes: 2 })
  describeSuites(servers, systemSuites)
  describeVersions(servers, 50)
  describe('nested groups', () => nestedGroupsStory((path) => servers().map((one) => one.client(path))))
})
