import { describe, expect, test } from 'vitest'
import { AuditStore } from '#audit/store/audit-store.ts'
import { Databases } from '#database/databases.ts'
import { UserDirectoryStore } from '#directory/store/user-directory-store.ts'
import { JournalStore } from '#features/scim/journal/journal-store.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { loginIdentity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { createUser } from '#testing/databases/directory-writes.ts'
import { busyWorkflow, manyRows, timeOf, userOf, workflowOf } from '#testing/databases/many-rows.ts'
import { freshSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { recordedQueries } from '#testing/databases/recorded-queries.ts'
import { ApprovalStore } from './approval-store.ts'
import { RunStore } from './run-store.ts'

const counts = { users: 20_000, groups: 10_000, runs: 20_000, audit: 20_000, journal: 20_000 }
const limit = 100
/** The most rows that a step of a plan reads for a page; far fewer than the tables have. */
const maxRead = 6_000

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Parent Relationship'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Join Filter'?: number
  readonly Plans?: readonly PlanNode[]
}

/**
 * The steps of a plan. PostgreSQL may hash the matches of a condition, while they are so few that this costs less than a
 * test of each candidate; such a step runs once.
 */
const nodesOf = (node: PlanNode): PlanNode[] =>
  node['Parent Relationship'] === 'SubPlan' && node['Actual Loops'] === 1
    ? []
    : [node, ...(node.Plans ?? []).flatMap(nodesOf)]

const readBy = (node: PlanNode): number =>
  node['Actual Loops'] *
  (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0))

describe.skipIf(postgresUrl() === '')('lists of the console on PostgreSQL', () => {
  test('a page of any list reads a part of an index, however many rows there are', async () => {
    const url = await freshSchema()
    const { client, release } = new Databases({ clock: systemClock, log: silentLogger }).use(url)
    try {
      const { client: recorded, queries } = recordedQueries(client)
      const people = new UserDirectoryStore(recorded, 'people', systemClock, async () => {})
      await createUser(people, { userID: 'boss', groups: ['bosses'], attributes: new Attributes() })
      for (const statement of manyRows('postgres', counts)) await runSql(url, statement)
      const runs = new RunStore(recorded)
      const approvals = new ApprovalStore(recorded)
      const audit = new AuditStore(recorded)
      const journal = new JournalStore(recorded)
      const login = userOf(7)
      const about = { identity: loginIdentity(login), login }
      const boss = [loginIdentity('boss')]
      const [middle, late] = [timeOf(counts.runs / 2, counts.runs), timeOf(counts.runs - 10, counts.runs)]
      const named = (attributes: readonly string[], initial: string): Filter => ({
        kind: 'or',
        filters: attributes.map((attribute) => ({ kind: 'substring', attribute, initial, any: [] })),
      })
      const users = (text: string) =>
        people.searchUsers({
          filter: named(['userID', 'displayName', 'mail'], text),
          offset: 0,
          limit,
          uncounted: true,
        })
      const groups = (text: string) =>
        people.searchGroups({ filter: named(['name'], text), offset: 0, limit, uncounted: true })
      const lists: Readonly<Record<string, () => Promise<{ readonly next?: string | undefined }>>> = {
        users: () => people.searchUsers({ offset: 0, limit, uncounted: true }),
        'users by a frequent start': () => users('user'),
        'users by a rare start': () => users('user001999'),
        'users by no start': () => users('nobody'),
        groups: () => people.searchGroups({ offset: 0, limit, uncounted: true }),
        'groups by a frequent start': () => groups('group'),
        'groups by a rare start': () => groups('group000999'),
        runs: () => runs.list({ limit }),
        'runs by state': () => runs.list({ states: ['waiting'], limit }),
        'runs by states': () => runs.list({ states: ['ready', 'running', 'waiting'], limit }),
        'runs by workflow': () => runs.list({ name: workflowOf(3), limit }),
        'runs by workflow and state': () => runs.list({ name: workflowOf(5), states: ['incident'], limit }),
        'runs by subject': () => runs.list({ subject: login, limit }),
        'runs about a user': () => runs.list({ about, limit }),
        'runs by requester': () => runs.list({ requester: login, limit }),
        'runs by target': () => runs.list({ target: 'people', limit }),
        'runs since': () => runs.list({ from: late, limit }),
        'runs before': () => runs.list({ until: middle, limit }),
        'runs of a workflow before': () => runs.list({ name: workflowOf(3), until: middle, limit }),
        'approvals that are open': () => approvals.listOpenOf({ limit }),
        'approvals of a workflow': () => approvals.listOpenOf({ workflow: workflowOf(0), limit }),
        'approvals of a workflow with many': () => approvals.listOpenOf({ workflow: busyWorkflow, limit }),
        'approvals of a workflow without any': () => approvals.listOpenOf({ workflow: workflowOf(3), limit }),
        'approvals of an approver': () => approvals.listOpenOf({ approvers: boss, limit }),
        'approvals that are overdue': () => approvals.listOpenOf({ overdueSince: late, limit }),
        audit: () => audit.list({ limit }),
        'audit by requester': () => audit.list({ requestor: login, limit }),
        'audit by subject': () => audit.list({ subject: login, limit }),
        'audit by run': () => audit.list({ workflowId: '00000007-0000-7000-8000-000000000000', limit }),
        'audit by target': () => audit.list({ target: 'people', limit }),
        'audit by a rare target': () => audit.list({ target: 'rare', limit }),
        'audit by request': () => audit.list({ requestId: 'd0000007-0000-7000-8000-000000000000', limit }),
        'audit since': () => audit.list({ from: late, limit }),
        'audit before': () => audit.list({ until: middle, limit }),
        'audit of a target before': () => audit.list({ target: 'people', until: middle, limit }),
        'audit of a requester before': () => audit.list({ requestor: login, until: middle, limit }),
        journal: () => journal.list({ journals: ['scim'], limit }),
        'journal of two': () => journal.list({ journals: ['scim', 'other'], limit }),
        'journal of all': () => journal.list({ limit }),
        'journal by status': () => journal.list({ journals: ['scim'], status: 404, limit: 20 }),
        'journal of failures': () => journal.list({ journals: ['scim'], failed: true, limit: 20 }),
        'journal since': () => journal.list({ journals: ['scim'], since: late, limit }),
      }
      const problems: string[] = []
      for (const [name, list] of Object.entries(lists)) {
        queries.length = 0
        await list()
        expect({ name, statements: queries.length }).not.toEqual({ name, statements: 0 })
        for (const { sql, params } of queries) {
          const [row] = await client.query<{ 'QUERY PLAN': readonly [{ readonly Plan: PlanNode }] }>({
            sql: `explain (analyze, timing off, format json) ${sql}`,
            params,
            name: undefined,
          })
          const plan = row?.['QUERY PLAN'][0].Plan
          if (plan === undefined) throw new Error('no plan')
          for (const node of nodesOf(plan)) {
            if (readBy(node) <= maxRead) continue
            problems.push(`${name}: ${node['Node Type']} of ${node['Relation Name'] ?? 'others'}, ${readBy(node)} rows`)
          }
        }
      }
      expect(problems).toEqual([])
      const first = await approvals.listOpenOf({ workflow: busyWorkflow, limit })
      const second = await approvals.listOpenOf({ workflow: busyWorkflow, limit, after: first.next ?? '' })
      const found = [...first.approvals, ...second.approvals]
      expect(new Set(found.map(({ id }) => id)).size).toBe(2 * limit)
      expect(new Set(found.map(({ run: { workflow } }) => workflow))).toEqual(new Set([busyWorkflow]))
    } finally {
      await release()
    }
  })
})
