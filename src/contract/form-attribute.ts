import type * as schema from './schemas/form-attribute.ts'
import type { Wire } from './wire.ts'
/** An item of a list that a person chooses from. */
export type ListItem = Wire<typeof schema.listItem>

/** How a field is shown: one line, several lines, one line with suggestions, a choice. */
export type FormAttributeType = Wire<typeof schema.formAttributeType>

/** One field of a form, as the registration page and the profile page get it. */
export type FormAttributeView = Wire<typeof schema.formAttributeView>
