import { expect, test } from 'vitest'
import { customTask, userAfter } from '#testing/workflows/workflow-fixture.ts'

const task = customTask('com.tremolosecurity.unison.proxy.auth.github.MergeGithubGroups', {})

test('orgs and teams of a GitHub login become groups, and stay attributes', async () => {
  const attributes = { githubOrgs: ['engines'], githubTeams: ['engines/platform'] }
  const user = await userAfter([task], { attributes, groups: ['own', 'engines'] })
  expect(user).toEqual({ attributes, groups: ['own', 'engines', 'engines/platform'] })
  expect((await userAfter([task], { groups: ['own'] }))?.groups).toEqual(['own'])
})
