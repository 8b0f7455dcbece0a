import { expect, test } from 'vitest'
import { Dn } from '#identity/dn.ts'
import { silentLogger } from '#kernel/logger.ts'
import { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import { MemoryPeople } from '#testing/workflows/memory-people.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import type { ApprovalPlan } from './approvers.ts'
import { ApprovalAuthority, ApproverFinder, type DecisionRight } from './approvers.ts'

const managers = 'cn=managers,ou=groups,ou=people,o=Tremolo'
const plan: ApprovalPlan = {
  approvers: [{ scope: 'group', constraint: managers, group: Dn.parse(managers) }],
  involved: { identities: [], names: ['asker'] },
  escalations: [],
}
const approval = { allowSelf: false, approvers: [userRef('ada')] }

/** Ada decides, and Bob for her while she is away. */
function setUp() {
  const people = new MemoryPeople().put('ada', ['managers']).put('bob')
  const { directory, root } = people
  const finder = new ApproverFinder({ directory, root, authorizations: new Map(), log: silentLogger })
  const authority = new ApprovalAuthority({
    finder,
    rules: new RuleEvaluator(directory, new Map(), silentLogger),
    delegations: { representedBy: async ({ login }) => (login === 'bob' ? [userRef('ada')] : []) },
  })
  return {
    people,
    kindOf: async (login: string): Promise<DecisionRight['kind']> =>
      (await authority.rightOf(approval, plan, userRef(login))).kind,
  }
}

const off = { active: ['false'] }

test('a user that the rules allow may decide, and so may the deputy', async () => {
  const { kindOf } = setUp()
  expect([await kindOf('ada'), await kindOf('bob'), await kindOf('cy')]).toEqual(['may', 'may', 'none'])
})

test('a deactivated approver may not decide, and has no deputy', async () => {
  const { people, kindOf } = setUp()
  people.put('ada', ['managers'], off)
  expect([await kindOf('ada'), await kindOf('bob')]).toEqual(['none', 'none'])
})

test('a deactivated deputy represents no one', async () => {
  const { people, kindOf } = setUp()
  people.put('bob', [], off)
  expect([await kindOf('ada'), await kindOf('bob')]).toEqual(['may', 'none'])
})
