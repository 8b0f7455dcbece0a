import { expect, test } from 'vitest'
import type { ParamValues } from '#testing/fake-parse.ts'
import { prepareGateway, tutorialParams } from '#testing/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const prepare = (params: ParamValues) => prepareGateway(scimGateway, params)
const without = (...names: string[]): ParamValues =>
  Object.fromEntries(Object.entries(tutorialParams).filter(([name]) => !names.includes(name)))

test('the tutorial is accepted as it is, with its references', () => {
  const { issues, references } = prepare({
    ...tutorialParams,
    groupDisplayName: 'displayName',
    groupMemberAttributeName: 'uniqueMember',
    'scim2tremolo.mail.targetType': 'string',
  })
  expect(issues).toEqual([])
  expect(references.map(({ kind, name }) => `${kind} ${name}`).sort()).toEqual([
    'target people',
    'workflow change-members',
    'workflow delete-group',
    'workflow delete-user',
    'workflow sync-user',
  ])
})

test.each<[string, ParamValues, string]>([
  [
    'a listed name without a source',
    without('scim2tremolo.mail.source', 'scim2tremolo.mail.sourceType'),
    'error params.scim2tremolo.1: "mail" has no parameter "scim2tremolo.mail.source"',
  ],
  [
    'a source that is not listed',
    { ...tutorialParams, 'tremolo2scim.title.source': 'x' },
    'error params.tremolo2scim.title.source: "title" is not in the list tremolo2scim',
  ],
  [
    'no target',
    without('lookupTarget'),
    'error params.lookupTarget: parameter "lookupTarget" is required unless lookupFromLDAP is "true"',
  ],
  [
    'no search base',
    { ...tutorialParams, lookupFromLDAP: 'true' },
    'error params.searchBase: parameter "searchBase" is required when lookupFromLDAP is "true"',
  ],
  ['no workflow', without('workflowName'), 'error params.workflowName: parameter "workflowName" is required'],
  [
    'an unknown SCIM attribute',
    { ...tutorialParams, tremolo2scim: ['userNam'], 'tremolo2scim.userNam.source': 'x' },
    'error params.tremolo2scim.userNam.source: no SCIM user attribute "userNam" (did you mean "userName"?)',
  ],
  [
    'a filter name that is no pair',
    { ...tutorialParams, userFilterScim2Ldap: 'emails.value' },
    'error params.userFilterScim2Ldap.0: "emails.value" is not of the form scim=internal',
  ],
  [
    'a filter name that SCIM does not have',
    { ...tutorialParams, groupFilterScim2Ldap: 'description=cn,id=cn' },
    'warning params.groupFilterScim2Ldap.0: "description" is no SCIM attribute of Group, so no filter can use it',
  ],
])('%s', (_name, params, expected) => {
  expect(prepare(params).issues).toContain(expected)
})

test('a search base that is no name', () => {
  const { issues } = prepare({ ...tutorialParams, lookupFromLDAP: 'true', searchBase: 'not a name' })
  expect(issues).toHaveLength(1)
  expect(issues[0]).toMatch(/^error params\.searchBase\.0: "searchBase": /)
})

test('tells how attributes travel, and what it uses', () => {
  const { prepared } = prepare(tutorialParams)
  expect(prepared.flow).toMatchObject({
    workflows: ['sync-user', 'delete-user', 'change-members'],
    target: 'people',
    given: ['userName', 'userName'],
  })
  expect(prepared.flow?.produces[1]).toEqual({ attribute: 'mail', path: ['params', 'scim2tremolo.mail.source'] })
  expect(prepared.flow?.reads).toContainEqual({ attribute: 'mail', path: ['params', 'tremolo2scim.emails.source'] })
  expect(prepared.summary).toContainEqual({ label: 'workflow: group members', value: 'change-members' })
})
