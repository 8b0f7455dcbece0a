import * as z from 'zod'
import type { GroupMapping } from '#sdk/target/group-mappings.ts'
import { paramsSchema, secretParamsSchema } from './envelope.ts'

export const mappingRuleSchema = z.strictObject({
  name: z.string().min(1),
  source: z.string(),
  sourceType: z.enum(['user', 'static', 'composite', 'custom']),
  targetType: z.string().optional(),
})

export const targetSchema = z.strictObject({
  className: z.string().min(1),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
  targetAttributes: z.array(mappingRuleSchema).optional(),
  /** False: without inserts, its users and groups are still no part of the directory. */
  inDirectory: z.boolean().optional(),
})
export type TargetSpec = z.infer<typeof targetSchema>

export const directoryInsertSchema = z.strictObject({
  className: z.string().min(1),
  suffix: z.string().min(1),
  order: z.int().min(0).max(1_000_000).optional(),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
  /** Attribute names of the directory, and their names in the system. */
  mapping: z.record(z.string().min(1), z.string().min(1)).optional(),
})
export type DirectoryInsertSpec = z.infer<typeof directoryInsertSchema>

/** Both versions have the same fields. Each task's module validates its content. */
export const workflowSchema = z.strictObject({
  label: z.string().optional(),
  description: z.string().optional(),
  inList: z.boolean().optional(),
  orgId: z.string().optional(),
  /** Who answers questions about it, as the portal shows them. */
  owner: z.string().optional(),
  dynamicConfiguration: z
    .strictObject({
      dynamic: z.boolean().optional(),
      className: z.string().optional(),
      params: paramsSchema.optional(),
      filterAnnotations: z
        .array(z.strictObject({ name: z.string(), requestObjectName: z.string().optional() }))
        .optional(),
    })
    .optional(),
  /** Request parameters that tasks read other than as `$name$`. */
  parameters: z.array(z.string()).optional(),
  /** The requester chooses the expiry date; `longest` is a length of time. */
  accessEnds: z
    .strictObject({ choose: z.enum(['optional', 'required']).optional(), longest: z.string().optional() })
    .optional(),
  /** The maximum duration of a run, from its start. */
  deadline: z.string().optional(),
  /** A list, or the YAML text of one. */
  tasks: z.union([z.string(), z.array(z.unknown())]),
})
export type WorkflowSpec = z.infer<typeof workflowSchema>

export const customAuthorizationSchema = z.strictObject({
  className: z.string().min(1),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})
export type CustomAuthorizationSpec = z.infer<typeof customAuthorizationSchema>

export const javaScriptMappingSchema = z.strictObject({
  /** Defines `doMapping(user, attributeName)`. */
  javascript: z.string().min(1),
  /** JavaScript objects whose code comes before it. */
  includeJs: z.array(z.string().min(1)).max(100).optional(),
})
export type JavaScriptMappingSpec = z.infer<typeof javaScriptMappingSchema>

export const javaScriptSchema = z.strictObject({
  /** Functions for scripts that name the object in `includeJs`. */
  javascript: z.string().min(1),
})
export type JavaScriptSpec = z.infer<typeof javaScriptSchema>

export const groupMetaDataSchema = z.strictObject({
  groupName: z.string().min(1),
  /** The group of another system, such as an identity provider. */
  externalName: z.string().optional(),
})
export type GroupMetaDataSpec = z.infer<typeof groupMetaDataSchema>

/** Of the roles in a namespace. */
export const namespaceGroupMetaDataSchema = z.strictObject({
  cluster: z.string().optional(),
  namespace: z.string().optional(),
  mappings: z.array(groupMetaDataSchema.extend({ roleName: z.string().optional() })).max(1_000),
})
export type NamespaceGroupMetaDataSpec = z.infer<typeof namespaceGroupMetaDataSchema>

/** The mappings of an object. One without an external name maps nothing. */
export function mappingsOf(spec: GroupMetaDataSpec | NamespaceGroupMetaDataSpec): GroupMapping[] {
  return ('mappings' in spec ? spec.mappings : [spec]).flatMap(({ groupName, externalName = '' }) => {
    const external = externalName.trim()
    return external === '' ? [] : [{ group: groupName.toLowerCase(), external }]
  })
}
