import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

const id = z.string().describe('The identity; it stays when the user or group is renamed.')
const next = z.string().describe('Where the next page starts; absent on the last page.').optional()

/** A user of the directory. */
export const consolePerson = z.object({
  id,
  login: z.string(),
  displayName: z.string().optional(),
  mail: z.string().optional(),
  deactivated: z.boolean().describe('The directory says that the user may not log in.'),
})
export type ConsolePerson = Wire<typeof consolePerson>

/** GET admin/people?q=&after=&limit=&format=. */
export const consolePeople = z.object({ people: z.array(consolePerson), next })

export const entryAttribute = z.object({
  name: z.string(),
  values: z.array(z.string()),
  hidden: z.literal(true).describe('It has values that are never shown.').optional(),
  cut: z.literal(true).describe('Values are missing, or are longer than shown.').optional(),
})
export type EntryAttribute = Wire<typeof entryAttribute>

/** GET admin/people/{id}. */
export const consolePersonDetails = consolePerson.extend({
  dn: z.string(),
  attributes: z.array(entryAttribute).describe('By name.'),
  own: z.boolean().describe('This is the caller, who can change nothing here.'),
  canDeactivate: z.boolean().describe('A workflow for this is configured, and the user is active.'),
})
export type ConsolePersonDetails = Wire<typeof consolePersonDetails>

/** A group of the directory. */
export const consoleGroup = z.object({ id, name: z.string(), description: z.string().optional(), dn: z.string() })
export type ConsoleGroup = Wire<typeof consoleGroup>

/** GET admin/groups?q=&after=&limit=&format=, and admin/people/{id}/groups. */
export const consoleGroups = z.object({ groups: z.array(consoleGroup), next })

/** GET admin/groups/{id}. */
export const consoleGroupDetails = consoleGroup.extend({ attributes: z.array(entryAttribute).describe('By name.') })
export type ConsoleGroupDetails = Wire<typeof consoleGroupDetails>

/** A member of a group. */
export const groupMember = z.object({
  dn: z.string(),
  kind: z.enum(['user', 'group', 'other']).describe('`other`: the directory has no user or group of that name.'),
  id: id.optional(),
  name: z.string().describe('The login or the name of the group; the name of the entry for others.'),
  displayName: z.string().optional(),
})
export type GroupMember = Wire<typeof groupMember>

/** GET admin/groups/{id}/members?after=&limit=&format=. */
export const groupMembers = z.object({ members: z.array(groupMember), next })

/** GET admin/people/{id}/sessions: the latest 100. */
export const personSession = z.object({
  id: z.string(),
  application: z.string(),
  started: z.string(),
  lastUsed: z.string(),
  expires: z.string(),
  address: z.string().describe('Untrusted text.'),
  agent: z.string().describe('Untrusted text.'),
})
export type PersonSession = Wire<typeof personSession>

export const personSessions = z.object({ sessions: z.array(personSession).describe('Latest first, at most 100.') })
export type PersonSessions = Wire<typeof personSessions>

/** GET admin/people/{id}/factors. */
export const personFactors = z.object({
  factors: z.array(
    z.object({
      id: z.string(),
      kind: z.enum(['totp', 'passkey']),
      name: z.string(),
      created: z.string(),
      lastUsed: z.string().describe('Absent until the first use.').optional(),
    }),
  ),
  recoveryCodes: z.int().describe('How many are left.'),
})
export type PersonFactors = Wire<typeof personFactors>

/** POST admin/people/{id}/sessions/end. */
export const endedPersonSessions = z.object({ ended: z.int().describe('How many sessions ended.') })
export type EndedPersonSessions = Wire<typeof endedPersonSessions>

/** POST admin/people/{id}/factors/reset. */
export const removedFactors = z.object({ removed: z.int().describe('How many factors were removed.') })
export type RemovedFactors = Wire<typeof removedFactors>

/** POST admin/people/{id}/deactivate: the workflow was started, and nothing is changed yet. */
export const startedDeactivation = z.object({ run: z.string() })
export type StartedDeactivation = Wire<typeof startedDeactivation>
