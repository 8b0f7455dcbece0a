import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

export const configurationProblem = z.object({
  level: z.enum(['error', 'warning']),
  file: z
    .string()
    .describe('Relative to the configuration folder, or `Kind/namespace/name` of an object of a cluster.'),
  line: z.int().optional(),
  column: z.int().optional(),
  path: z.string().describe('Such as `spec.urls[0].uri`; empty for a whole document.'),
  message: z.string(),
})
export type ConfigurationProblemView = Wire<typeof configurationProblem>

/** Objects that are set aside because of one error. */
export const setAsideGroup = z.object({
  object: z.string().describe('The object that has the error, or that nothing has the name of.'),
  place: z.string().optional().describe('Where the error is. Absent: nothing has the name.'),
  message: z.string(),
  objects: z
    .array(z.object({ kind: z.string(), name: z.string().optional(), file: z.string() }))
    .describe('What is set aside because of it. The first 20.'),
  objectCount: z.int(),
})
export type SetAsideGroup = Wire<typeof setAsideGroup>

/** GET admin/configuration. */
export const configuration = z.object({
  running: z.object({ hash: z.string(), since: z.string() }),
  latest: z
    .object({ outcome: z.enum(['applied', 'refused', 'failed', 'unread']), time: z.string() })
    .describe('The latest time that the configuration was read: `refused` because of errors, `failed` without any.'),
  served: z.int().describe('How many objects the running configuration serves.'),
  setAside: z.int().describe('How many it does not serve, because of errors.'),
  setAsideBecause: z
    .array(setAsideGroup)
    .describe('Why they are set aside: the error that concerns most objects first. The first 100.'),
  problems: z.array(configurationProblem).describe('Of the latest configuration that could be read. The first 500.'),
  problemCount: z.int(),
})
export type ConfigurationView = Wire<typeof configuration>

export const configurationObject = z.object({
  kind: z.string().describe('`values` for a document without a kind.'),
  name: z.string().optional(),
  file: z.string(),
  line: z.int().optional(),
  status: z
    .enum(['loaded', 'warnings', 'set aside', 'errors', 'not loaded'])
    .describe(
      '`set aside`: the running configuration does not serve it, because of an error. `errors`: its latest content was refused; an earlier one may be running.',
    ),
  setAside: z.string().optional().describe('The error because of which it is set aside, and the object that has it.'),
  running: z.boolean().describe('Whether the running configuration has it.'),
  errors: z.int(),
  warnings: z.int(),
})
export type ConfigurationObjectView = Wire<typeof configurationObject>

/** GET admin/configuration/objects?kind=&name=&status=&limit=&after=&format=. */
export const configurationObjects = z.object({
  objects: z
    .array(configurationObject)
    .describe(
      'Objects that are set aside first, then those with errors, then objects that are not loaded; each by place.',
    ),
  next: z.string().optional(),
})

/** The answer of POST admin/configuration/explain. */
export const explanation = z.object({
  allowed: z.boolean(),
  lines: z.array(z.string()),
})
export type ExplanationView = Wire<typeof explanation>
