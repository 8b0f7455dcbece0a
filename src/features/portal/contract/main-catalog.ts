import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { workflowListItem } from './main.ts'

/** GET workflows/named/{name}: what the catalog says about one workflow. */
export const catalogItem = z.object({
  name: z.string(),
  label: z.string().describe('With `$name$` for parameters that its rows fill.'),
  description: z.string().describe('Markdown.'),
  org: z.string().describe('An org in whose list it is.'),
  owner: z.string().describe('Who answers questions about it, as the configuration says.').optional(),
  accessEnds: workflowListItem.shape.accessEnds,
  approverGroups: z.array(z.string()).describe('Groups whose members decide, as far as the configuration names them.'),
  decisionMillis: z
    .int()
    .describe('The median time from the request of an approval to its decision. Absent if there were too few lately.')
    .optional(),
})
export type CatalogItem = Wire<typeof catalogItem>
