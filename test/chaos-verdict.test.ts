import { expect, test } from 'vitest'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { StoredRun } from '#workflows/record/run.ts'
import type { Effect } from './chaos/hostile-target.ts'
import { type Evidence, judge } from './chaos/verdict.ts'
import type { Submission, WorkKind } from './chaos/workload.ts'

const submission = (ticket: string, kind: WorkKind, more: Partial<Submission> = {}): Submission => ({
  ticket,
  user: `user-${ticket}`,
  kind,
  place: 0,
  run: `run-${ticket}`,
  status: 202,
  otherRuns: new Set(),
  ...more,
})

const effect = (ticket: string, stage: string, more: Partial<Effect> = {}): Effect => ({
  user: `user-${ticket}`,
  ticket,
  stage,
  key: `run-${ticket}/1`,
  ...more,
})

const decision = (approval: string, value: string): AuditEntry => ({
  id: `${approval}${value}`,
  time: new Date(0),
  requestor: 'alice',
  subject: 'user-b',
  workflow: { id: 'run-b', name: 'approved' },
  target: 'gatehouse',
  kind: 'entry',
  action: 'replace',
  attribute: 'approval',
  value,
  approval,
})

const change = ({ user, stage, ticket, key }: Effect): AuditEntry => ({
  id: `${ticket}${stage}`,
  time: new Date(0),
  requestor: 'chaos',
  subject: user,
  workflow: { id: key.slice(0, -2), name: 'plain' },
  target: 'crm',
  kind: 'attribute',
  action: 'add',
  attribute: stage,
  value: ticket,
})

interface Story {
  readonly submissions?: readonly Submission[]
  readonly effects?: readonly Effect[]
  readonly states?: Readonly<Record<string, StoredRun['state']>>
  readonly rows?: readonly AuditEntry[]
  /** The effects in the audit; all if absent. */
  readonly audited?: readonly Effect[]
  readonly mails?: readonly { readonly recipient: string; readonly subject: string }[]
  readonly decided?: readonly (readonly [string, number])[]
  readonly problems?: readonly { readonly kind: 'changed' }[]
}

const kept = {
  submissions: [submission('a', 'nested'), submission('b', 'approved'), submission('p', 'poison')],
  effects: [effect('a', 'stage1'), effect('a', 'stage2'), effect('b', 'stage1'), effect('b', 'denied')],
  states: { 'run-a': 'completed', 'run-b': 'completed', 'run-p': 'incident' },
  rows: [decision('1', 'denied')],
  mails: [{ recipient: 'user-a@example.com', subject: 'done a' }],
} as const satisfies Story

async function broken(story: Story): Promise<readonly string[]> {
  const all = {
    ...kept,
    decided: [],
    problems: [],
    audited: story.effects ?? kept.effects,
    ...story,
  }
  const states: Readonly<Record<string, StoredRun['state']>> = all.states
  const evidence: Evidence = {
    submissions: all.submissions,
    storage: {
      runs: {
        get: async (id) => (states[id] === undefined ? undefined : ({ head: { id }, state: states[id] } as StoredRun)),
      },
      audit: {
        export: async () => ({
          records: [{ link: { chain: 0, number: 1, hash: '' }, rows: [...all.rows, ...all.audited.map(change)] }],
        }),
        verify: async () => ({
          checked: 1,
          authenticated: true,
          since: new Date(),
          sealed: [],
          pruned: [],
          problems: all.problems,
        }),
      },
      mails: { figures: async () => ({ queued: 0, unknown: 0, failed: 0 }) },
    },
    target: { effects: [...all.effects], repeated: 0 },
    mailbox: { taken: new Map(all.mails.map((mail, i) => [String(i), { ...mail, times: 1 }])) },
    decided: new Map(all.decided),
  }
  return (await judge(evidence)).broken
}

test('kept promises', async () => {
  expect(await broken({})).toEqual([])
})

test('another run ends a synchronous call that failed part way and was repeated', async () => {
  const submissions = [submission('s', 'synchronous'), ...kept.submissions]
  const effects = [effect('s', 'stage1', { key: 'run-before/1' }), effect('s', 'stage2'), ...kept.effects]
  expect(await broken({ submissions, effects, states: { ...kept.states, 'run-s': 'completed' } })).toEqual([])
})

test.each<[string, Story, RegExp]>([
  [
    'a synchronous call that failed',
    {
      submissions: [submission('s', 'synchronous'), ...kept.submissions],
      states: { ...kept.states, 'run-s': 'failed' },
    },
    /^lost: s \(synchronous\) is failed/,
  ],
  ['a run that still waits', { states: { ...kept.states, 'run-a': 'waiting' } }, /^lost: a \(nested\) is waiting/],
  ['a run that failed', { states: { ...kept.states, 'run-a': 'failed' } }, /^lost: a/],
  ['an unknown run', { states: { 'run-b': 'completed', 'run-p': 'incident' } }, /^lost: a .* missing/],
  ['an effect that happened twice', { effects: [...kept.effects, effect('a', 'stage2')] }, /^doubled: a stage2/],
  ['an effect that did not happen', { effects: kept.effects.slice(1) }, /^no effect: a stage1/],
  ['two outcomes of one approval', { effects: [...kept.effects, effect('b', 'stage2')] }, /both approved and denied/],
  ['a decision that was taken twice', { rows: [decision('1', 'denied'), decision('1', 'approved')] }, /decided twice/],
  ['two approvers with the same decision', { decided: [['1', 2]] }, /2 were told/],
  ['a mail under two ids', { mails: [...kept.mails, ...kept.mails] }, /^mailed twice/],
  ['a mail that was never sent', { mails: [] }, /^no mail about a/],
  ['an effect that the audit lacks', { audited: kept.effects.slice(1) }, /^no audit of a stage1/],
  ['a chain that was broken', { problems: [{ kind: 'changed' }] }, /^audit: /],
  [
    'a key that belongs to another run',
    { effects: [effect('a', 'stage1', { key: 'other/1' }), ...kept.effects.slice(1)] },
    /^key: a stage1/,
  ],
  [
    'two runs for one call',
    { submissions: [submission('a', 'nested', { otherRuns: new Set(['x']) }), ...kept.submissions.slice(1)] },
    /^two runs: a/,
  ],
  [
    'calls about one user in the wrong order',
    {
      submissions: [submission('a', 'plain', { user: 'u' }), submission('b', 'plain', { user: 'u', place: 1 })],
      effects: ['b', 'a'].flatMap((one) => [
        effect(one, 'stage1', { user: 'u' }),
        effect(one, 'stage2', { user: 'u' }),
      ]),
    },
    /^order: a came behind/,
  ],
  ['a poisoned run that was completed', { states: { ...kept.states, 'run-p': 'completed' } }, /cannot be completed/],
])('%s is detected', async (_, story, problem) => {
  expect(await broken(story)).toEqual(expect.arrayContaining([expect.stringMatching(problem)]))
})
