import { expect, test } from 'vitest'
import { onlyFor, openMain, org, workflow } from '#testing/modules/main-fixture.ts'

const day = 86_400_000

test('an item says who owns it, who decides, how long that takes, and how long access lasts', async () => {
  const longest = { months: 0, millis: 90 * day }
  const { send } = await openMain({
    portal: {
      workflows: [
        workflow('vault', {
          description: '**Keys**',
          owner: 'Ops',
          approverGroups: ['owners'],
          accessEnds: { required: true, longest },
        }),
      ],
    },
    approvals: { decisionMillis: async (name) => (name === 'vault' ? 5_000 : undefined) },
  })
  expect((await send('GET', '/workflows/named/vault')).body).toEqual({
    name: 'vault',
    label: 'Workflow vault',
    description: '**Keys**',
    org: 'root',
    owner: 'Ops',
    accessEnds: { required: true, longestSeconds: 90 * 86_400 },
    approverGroups: ['owners'],
    decisionMillis: 5_000,
  })
})

test('an item says nothing that is not known, and has an org even if it is in every one', async () => {
  const { send } = await openMain({
    portal: { orgs: [org('first'), org('second')], workflows: [workflow('any', { org: undefined })] },
    approvals: { decisionMillis: async () => undefined },
  })
  expect((await send('GET', '/workflows/named/any')).body).toEqual({
    name: 'any',
    label: 'Workflow any',
    description: '',
    org: 'first',
    approverGroups: [],
  })
})

test.each(['unlisted', 'hidden', 'none'])('the item %s does not exist for the caller', async (name) => {
  const { send } = await openMain({
    portal: {
      orgs: [org('root'), org('closed', { rules: [onlyFor('others')] })],
      workflows: [workflow('unlisted', { inList: false }), workflow('hidden', { org: 'closed' })],
    },
  })
  await expect(send('GET', `/workflows/named/${name}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
