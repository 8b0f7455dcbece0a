import assert from 'node:assert/strict'
import { syncOptions, type TargetCase, type TargetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasPasswords, type TargetChange } from '#sdk/target/target.ts'

/** Every change is told, and nothing else. */
export const auditCases: readonly TargetCase[] = [
  {
    name: 'audit: creating tells the entry, its attributes and its groups',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      const [many, one] = attributes
      await target.createUser(userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]]), attributes, request)
      assertTold(fixture, { subject: 'entry', action: 'add' })
      assertTold(fixture, { subject: 'attribute', action: 'add', attribute: many, value: 'a@x.test' })
      assertTold(fixture, { subject: 'attribute', action: 'add', attribute: one, value: 'Ada' })
      assertTold(fixture, { subject: 'group', action: 'add', value: groups[0] })
    },
  },
  {
    name: 'audit: a change tells what was added, replaced and taken away',
    async run(fixture) {
      const { target, attributes, groups, request, changes } = fixture
      const [many, one, other] = attributes
      const before = userOf('ada', { [many]: ['a@x.test', 'b@x.test'], [one]: ['Ada'] }, [groups[0], groups[1]])
      await target.createUser(before, attributes, request)
      changes.length = 0
      const after = userOf('ada', { [many]: ['b@x.test'], [one]: ['Zoe'], [other]: ['1'] }, [groups[1], groups[2]])
      await target.syncUser(after, syncOptions(attributes), request)
      for (const attribute of attributes) assertTold(fixture, { subject: 'attribute', attribute })
      assertTold(fixture, { attribute: one, value: 'Zoe' })
      assertTold(fixture, { subject: 'attribute', action: 'add', attribute: other, value: '1' })
      assertTold(fixture, { subject: 'group', action: 'add', value: groups[2] })
      assertTold(fixture, { subject: 'group', action: 'delete', value: groups[0] })
      const untouched = changes.filter(({ subject, value }) => subject === 'group' && value === groups[1])
      assert.deepEqual(untouched, [])
    },
  },
  {
    name: 'audit: what changes nothing tells nothing',
    async run({ target, attributes, groups, request, changes }) {
      const user = userOf('ada', { [attributes[0]]: ['a@x.test', 'b@x.test'] }, [groups[0]])
      await target.createUser(user, attributes, request)
      changes.length = 0
      await target.syncUser(user, syncOptions(attributes), request)
      await target.deleteUser(userOf('nobody'), request)
      assert.deepEqual(changes, [])
    },
  },
  {
    name: 'audit: deleting tells the entry, once',
    async run(fixture) {
      const { target, attributes, request, changes } = fixture
      await target.createUser(userOf('ada'), attributes, request)
      changes.length = 0
      await target.deleteUser(userOf('ada'), request)
      await target.deleteUser(userOf('ada'), request)
      const entries = changes.filter(({ subject, action }) => subject === 'entry' && action === 'delete')
      assert.equal(entries.length, 1)
    },
  },
  {
    name: 'audit: a password is never told',
    async run({ target, attributes, request, changes }) {
      if (!hasPasswords(target)) return
      await target.createUser(userOf('ada'), attributes, request)
      changes.length = 0
      await target.setUserPassword(userOf('ada'), 'correct horse', request)
      assert.equal(changes.length, 1)
      assert.ok(!JSON.stringify(changes).includes('correct horse'))
    },
  },
]

function assertTold({ changes }: TargetFixture, wanted: Partial<TargetChange>): void {
  const told = changes.some((change) =>
    Object.entries(wanted).every(([field, value]) => change[field as keyof TargetChange] === value),
  )
  assert.ok(told, `no audit entry like ${JSON.stringify(wanted)} in ${JSON.stringify(changes)}`)
}
