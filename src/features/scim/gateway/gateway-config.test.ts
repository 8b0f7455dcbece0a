import { expect, test } from 'vitest'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { prepareGateway, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const prepare = (params: ParamValues) => prepareGateway(scimGateway, params)
const without = (...names: string[]): ParamValues =>
  Object.fromEntries(Object.entries(tutorialParams).filter(([name]) => !names.includes(name)))

test('the tutorial is accepted unchanged, with its references', () => {
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
    'a misspelled choice for unknown managers',
    { ...tutorialParams, unknownManager: 'acept' },
    'error params.unknownManager.0: "unknownManager": must be one of refuse, accept, not "acept"',
  ],
  [
    'a filter name that is not a pair',
    { ...tutorialParams, userFilterScim2Ldap: 'emails.value' },
    'error params.userFilterScim2Ldap.0: "emails.value" is not of the form scim=internal',
  ],
  [
    'a filter name that SCIM does not have',
    { ...tutorialParams, groupFilterScim2Ldap: 'description=cn,id=cn' },
    'warning params.groupFilterScim2Ldap.0: "description" is not a SCIM attribute of Group, so no filter can use it',
  ],
])('%s', (_name, params, expected) => {
  expect(prepare(params).issues).toContain(expected)
})

const smallest: ParamValues = { mapping: 'scim', lookupTarget: 'people', workflowName: 'sync-user' }
const extension = (...attributes: object[]): string => JSON.stringify({ id: 'urn:example:X', attributes })

test('without mapping lines only the target and the workflow are required', () => {
  const { prepared, issues } = prepare(smallest)
  expect(issues).toEqual([])
  expect(prepared.flow?.given).toEqual(['userName'])
  const produced = prepared.flow?.produces.map(({ attribute }) => attribute) ?? []
  expect(produced).toEqual(expect.arrayContaining(['title', 'name.givenName', 'emails', 'emails.value', 'externalId']))
  expect(produced).not.toEqual(expect.arrayContaining(['password']))
  expect(new Set(produced).size).toBe(produced.length)
  expect(prepared.summary).toContainEqual({ label: 'mapping', value: `scim, ${produced.length} internal attributes` })
})

test('with mapping lines only, the login needs an attribute', () => {
  expect(prepare({ ...smallest, mapping: 'lines' }).issues).toEqual([
    'error params.uidAttributeName: parameter "uidAttributeName" is required',
  ])
})

test.each<[string, string | string[], string]>([
  ['no text of a schema', '{', 'error params.userSchema.0: "userSchema": the schema is neither JSON nor YAML'],
  ['no schema', '[]', 'error params.userSchema.0: "userSchema": a schema must be an object'],
  [
    'a schema with a mistake',
    extension({ name: 'a', type: 'text' }),
    'error params.userSchema.0: "userSchema": attributes.0.type: "type" must be one of',
  ],
  [
    'an attribute that the core has',
    `{ id: 'urn:ietf:params:scim:schemas:core:2.0:User', attributes: [{ name: USERNAME }] }`,
    'error params.userSchema.0: "userSchema": attributes.0.name: urn:ietf:params:scim:schemas:core:2.0:User already has',
  ],
  [
    'the same attribute twice',
    [extension({ name: 'a' }), extension({ name: 'A' })],
    'error params.userSchema.1: "userSchema": attributes.0.name: urn:example:X already has an attribute "A"',
  ],
  [
    'a uniqueness that no target enforces',
    extension({ name: 'a', uniqueness: 'server' }),
    'warning params.userSchema.0: "userSchema": values of "a" are not checked for uniqueness, so its "uniqueness" is shown as none',
  ],
  [
    'a name that filters use for the login',
    `{ id: 'urn:ietf:params:scim:schemas:core:2.0:User', attributes: [{ name: userID }] }`,
    'error params.mapping: the schema attribute "userID" has a reserved name; add a mapping line for it',
  ],
  [
    'a text whose aliases expand without limit',
    'a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]',
    'error params.userSchema.0: "userSchema": a schema must be an object',
  ],
])('%s', (_name, userSchema, expected) => {
  const { issues } = prepare({ ...smallest, userSchema })
  expect(issues[0]?.slice(0, expected.length)).toBe(expected)
})

test('rejects a search base that is not a DN', () => {
  const { issues } = prepare({ ...tutorialParams, lookupFromLDAP: 'true', searchBase: 'not a name' })
  expect(issues).toHaveLength(1)
  expect(issues[0]).toMatch(/^error params\.searchBase\.0: "searchBase": /)
})

test('describes the flow of attributes and the workflows and targets it uses', () => {
  const { prepared } = prepare(tutorialParams)
  expect(prepared.flow).toMatchObject({
    workflows: ['sync-user', 'delete-user', 'change-members'],
    target: 'people',
    given: ['userName'],
  })
  expect(prepared.flow?.produces[1]).toEqual({ attribute: 'mail', path: ['params', 'scim2tremolo.mail.source'] })
  expect(prepared.flow?.reads).toContainEqual({ attribute: 'mail', path: ['params', 'tremolo2scim.emails.source'] })
  expect(prepared.summary).toContainEqual({ label: 'workflow: group members', value: 'change-members' })
})

test('a lookupAttributeName beside another idAttributeName is a warning, since it has no effect', () => {
  const issuesOf = (params: object) => prepareGateway(scimGateway, { ...tutorialParams, ...params }).issues
  expect(issuesOf({ lookupAttributeName: 'mail' })).toEqual([])
  expect(issuesOf({ lookupAttributeName: 'Mail', idAttributeName: 'mail' })).toEqual([])
  expect(issuesOf({ idAttributeName: 'badge' })).toEqual([])
  expect(issuesOf({ lookupAttributeName: 'mail', idAttributeName: 'badge' })).toEqual([
    expect.stringMatching(/^warning params\.lookupAttributeName: .*"badge" by idAttributeName/),
  ])
})
