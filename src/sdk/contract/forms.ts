import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

/** An item of a list that a person chooses from. */
export const listItem = z.object({
  name: z.string().describe('Label of the item'),
  value: z.string().describe('Value of the item'),
  num: z.int().describe('Position of the item in the order, from 0'),
})
export type ListItem = Wire<typeof listItem>

/** How a field is shown: one line, several lines, one line with suggestions, a choice. */
export const formAttributeType = z.enum(['text', 'text-area', 'text-list', 'list'])
export type FormAttributeType = Wire<typeof formAttributeType>

/** One field of a form, as the registration page and the profile page get it. */
export const formAttributeView = z.object({
  name: z.string().describe('Attribute name'),
  displayName: z.string().describe('Display label'),
  readOnly: z.boolean().describe('true if the value is read-only'),
  required: z.boolean().describe('true if the value must be in the request'),
  regEx: z
    .string()
    .describe('Regular expression usable to validate the value: RE2 syntax, and the whole value must match')
    .optional(),
  regExFailedMsg: z.string().describe('What is said when it does not match').optional(),
  minChars: z.int().describe('Minimum number of characters; absent or 0: none').optional(),
  maxChars: z.int().describe('Maximum number of characters; absent or 0: none').optional(),
  unique: z.boolean().describe('true if only one value of this attribute is allowed in the datastore'),
  type: formAttributeType.describe('How the field is shown'),
  values: z
    .array(listItem)
    .describe('Allowed values; empty where anything may be typed, or where the list has to be searched'),
  show: z.boolean().describe('true if the attribute is shown'),
})
export type FormAttributeView = Wire<typeof formAttributeView>
