import * as z from 'zod'
import {
  maxExtensions,
  maxListed,
  maxSchemaAttributes,
  maxSubAttributes,
  maxText,
  mutabilities,
  returns,
  uniquenesses,
} from '#protocols/scim/schema/read-schema.ts'
import { attributeTypes } from '#protocols/scim/schema/schema.ts'

const text = z.string().max(maxText)
const texts = z.array(text).max(maxListed)

/** The characteristics of RFC 7643 section 7. */
const characteristics = {
  name: z.string().min(1).max(100),
  type: z.enum(attributeTypes).optional(),
  multiValued: z.boolean().optional(),
  description: text.optional(),
  required: z.boolean().optional(),
  canonicalValues: texts.optional(),
  caseExact: z.boolean().optional(),
  mutability: z.enum(mutabilities).optional(),
  returned: z.enum(returns).optional(),
  uniqueness: z.enum(uniquenesses).optional(),
  /** Resource types, or `external` or `uri`. */
  referenceTypes: texts.optional(),
}

const attributes = z
  .array(
    z.strictObject({
      ...characteristics,
      subAttributes: z.array(z.strictObject(characteristics)).max(maxSubAttributes).optional(),
    }),
  )
  .max(maxSchemaAttributes)

export const resourceTypeSchema = z.strictObject({
  /** Such as `Device`. */
  name: z.string().min(1).max(64),
  /** Such as `/Devices`. */
  endpoint: z.string().min(1).max(64),
  description: text.optional(),
  /** The URN of its schema. */
  schema: z.string().min(1),
  attributes,
  extensions: z
    .array(
      z.strictObject({
        schema: z.string().min(1),
        name: text.optional(),
        description: text.optional(),
        /** Every resource has it. */
        required: z.boolean().optional(),
        attributes,
      }),
    )
    .max(maxExtensions)
    .optional(),
  /** The attribute that names a resource, as the login names a user. */
  nameAttribute: z.string().min(1),
  target: z.string().min(1),
  /** Creates and changes a resource. */
  workflow: z.string().min(1),
  deleteWorkflow: z.string().optional(),
})
export type ResourceTypeSpec = z.infer<typeof resourceTypeSchema>
