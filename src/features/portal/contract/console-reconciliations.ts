import * as z from 'zod'
import {
  differenceKinds,
  planStates,
  reconciliationActions,
  rowStates,
} from '#features/reconciliation/contract/plan-words.ts'
import type { Wire } from '#kernel/wire.ts'
import { entryAttribute } from './console-people.ts'
import { personNames } from './person-names.ts'

const count = z.int()
const time = z.string()

const byKind = z.object({ missing: count, different: count, extra: count, ambiguous: count, unknown: count })

/** What a comparison that read both systems to their end found. */
export const driftReport = byKind.extend({
  plan: z.string().describe('The plan of the comparison, which may have been deleted since.'),
  at: time,
  source: count.describe('People of the source in scope.'),
  target: count.describe('Accounts of the target in scope.'),
  agree: count,
})
export type DriftReport = Wire<typeof driftReport>

/** A plan: a comparison of two systems, and what is done about the differences. */
export const consolePlan = z.object({
  id: z.string(),
  reconciliation: z.string(),
  state: z.enum(planStates),
  scheduled: time.describe('The time of the schedule that requested it.').optional(),
  requestedBy: z.string(),
  reason: z.string().optional(),
  people: count.describe('How many changed people it is about; everyone if absent.').optional(),
  approval: z.object({ at: time, by: z.string(), reason: z.string().optional() }).optional(),
  counts: z.object({
    source: count,
    target: count,
    agree: count,
    differences: byKind,
    actions: z.object({
      report: count,
      create: count,
      change: count,
      deactivate: count,
      delete: count,
      removeMemberships: count,
    }),
    removes: count.describe('How many of the changes deactivate an account or take its last compared membership.'),
  }),
  problem: z.string().describe('Why it is paused, stopped, failed or expired.').optional(),
  due: time.describe('When a gateway continues it.').optional(),
  created: time,
  compared: time.describe('When both systems were read to their end.').optional(),
  ended: time.optional(),
})
export type ConsolePlan = Wire<typeof consolePlan>

/** GET admin/reconciliations/{name}/plans?after=&limit=&format=. */
export const consolePlans = z.object({
  plans: z.array(consolePlan).describe('Latest first.'),
  next: z.string().optional(),
  names: personNames.optional(),
})

/** GET admin/plans/{id}. */
export const consolePlanDetails = consolePlan.extend({
  rows: z
    .object({
      reported: count,
      open: count,
      started: count,
      waiting: count,
      done: count,
      skipped: count,
      failed: count,
    })
    .describe('How many rows are in each state.'),
  own: z.boolean().describe('It would change an account with the login of the caller, who therefore may not apply it.'),
  limits: z
    .object({ percent: z.number(), accounts: count })
    .describe('The most accounts that a plan may take access from; absent if the reconciliation is not configured now.')
    .optional(),
})
export type ConsolePlanDetails = Wire<typeof consolePlanDetails>

const accountName = z.object({ id: z.string().optional(), login: z.string() })
export type AccountNameView = Wire<typeof accountName>

/** A row of a plan. */
export const planRow = z.object({
  number: count.describe('Its place in the plan.'),
  state: z.enum(rowStates),
  kind: z.enum(differenceKinds),
  action: z.enum(reconciliationActions),
  source: accountName.describe('The person; absent for an account that no person has.').optional(),
  target: accountName.describe('The account; absent if there is none.').optional(),
  rule: z.string().describe('The correlation rule that matched.').optional(),
  candidates: z.array(accountName).describe('Between which an ambiguous match can’t decide.').optional(),
  attributes: z.array(
    z.object({ name: z.string(), from: z.array(z.string()), to: z.array(z.string()) }).describe('Without secrets.'),
  ),
  groups: z.object({ add: z.array(z.string()), remove: z.array(z.string()) }),
  removes: z.literal(true).describe('The change takes access away, so that the limits count it.').optional(),
  reason: z.string().describe('Why this is a difference.'),
  outcome: z.string().describe('Why it was skipped, failed or waits.').optional(),
  run: z.string().optional(),
  updated: time,
})
export type PlanRowView = Wire<typeof planRow>

/** GET admin/plans/{id}/rows?kind=&action=&state=&login=&after=&limit=&format=. */
export const planRows = z.object({ rows: z.array(planRow), next: z.string().optional() })

/** A configured reconciliation with its last comparison. */
export const consoleReconciliation = z.object({
  name: z.string(),
  description: z.string(),
  source: z.string().describe('The target, or the base in the directory, with the people.'),
  target: z.string(),
  apply: z.enum(['manual', 'automatic']),
  drift: driftReport.describe('Absent before the first comparison.').optional(),
  differsSince: time
    .describe('Every comparison since then found differences; absent if the last one found none.')
    .optional(),
  plan: consolePlan.describe('The latest plan.').optional(),
  trend: z.array(driftReport).describe('The latest comparisons, oldest first; a list has fewer of them.'),
})
export type ConsoleReconciliation = Wire<typeof consoleReconciliation>

/** GET admin/reconciliations?q=&after=&limit=&format=. */
export const consoleReconciliations = z.object({
  reconciliations: z.array(consoleReconciliation).describe('By name.'),
  next: z.string().optional(),
})

/** GET admin/reconciliations/{name}. */
export const consoleReconciliationDetails = consoleReconciliation.extend({
  rules: z.array(z.string()).describe('How accounts are found, in order, after the links.'),
  missing: z.enum(['report', 'create']),
  different: z.enum(['report', 'change']),
  extra: z.enum(['report', 'deactivate', 'delete', 'removeMemberships']),
  limits: z.object({ percent: z.number(), accounts: count }),
})
export type ConsoleReconciliationDetails = Wire<typeof consoleReconciliationDetails>

/** POST admin/reconciliations/{name}/plans: `isNew` is false if a plan was under way, which this is then. */
export const requestedPlan = z.object({ plan: consolePlan, isNew: z.boolean() })
export type RequestedPlan = Wire<typeof requestedPlan>

/** A decision which account a person has. */
export const accountLink = z.object({
  source: z.string().describe('The id of the person, or the login if the source has no ids.'),
  target: z.string().describe('The same of the account; absent if the person has none.').optional(),
  personLogin: z
    .string()
    .describe('The login that the source has for the id now; absent if it was not found.')
    .optional(),
  accountLogin: z.string().describe('The same at the target.').optional(),
  decided: time,
  decidedBy: z.string(),
  reason: z.string().optional(),
})
export type AccountLinkView = Wire<typeof accountLink>

/** GET admin/reconciliations/{name}/links?after=&limit=&format=. */
export const accountLinks = z.object({
  links: z.array(accountLink),
  next: z.string().optional(),
  names: personNames.optional(),
})

/** POST admin/reconciliations/{name}/links: what was stored. */
export const linkedAccount = z.object({
  source: z.string(),
  target: z.string().optional(),
  unknown: z.array(z.string()).describe('Names that no row of the last plan has; they are stored as given.'),
})
export type LinkedAccount = Wire<typeof linkedAccount>

/** POST admin/reconciliations/{name}/links/remove. */
export const unlinkedAccount = z.object({ removed: z.boolean().describe('False if there was no such link.') })
export type UnlinkedAccount = Wire<typeof unlinkedAccount>

/** A system that should have an account of a person. */
export const systemOfPerson = z.object({
  reconciliation: z.string(),
  target: z.string(),
  login: z.string().describe('The login of the account; the login or id that was looked for if there is none.'),
  rule: z
    .string()
    .describe(
      'What found the account, such as `mail`, or `link` for a decision, also that there is none. Absent if only the login is the same.',
    )
    .optional(),
  candidates: z.array(accountName).describe('Accounts between which the rule can’t decide.').optional(),
  account: z
    .object({ id: z.string().optional(), attributes: z.array(entryAttribute), groups: z.array(z.string()) })
    .describe('What the target has now; absent if it has none for the user, several, or was not read.')
    .optional(),
  problem: z.string().describe('Why the target could not be read.').optional(),
  compared: time.describe('The last comparison; absent before the first one.').optional(),
  differences: z.array(planRow).describe('What that comparison found about the login.'),
})
export type SystemOfPerson = Wire<typeof systemOfPerson>

/** GET admin/people/{id}/systems. */
export const systemsOfPerson = z.object({ systems: z.array(systemOfPerson) })
export type SystemsOfPerson = Wire<typeof systemsOfPerson>
