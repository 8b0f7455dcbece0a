import { describe } from 'vitest'
import { scimServers } from '#testing/scim/scim-story.ts'
import { nestedGroupsStory, withSharedNames } from './nested-groups.ts'
import { otherClientsStory } from './others.ts'
import { allSuites, describeSuites, describeVersions, firstOf } from './suites.ts'

describe('SCIM clients on SQLite', () => {
  const servers = scimServers({ lookups: withSharedNames })
  describeSuites(servers, allSuites)
  describeVersions(servers, 50)
  otherClientsStory((path) => firstOf(servers).client(path))
  describe('nested groups', () => nestedGroupsStory((path) => servers().map((one) => one.client(path))))
})
