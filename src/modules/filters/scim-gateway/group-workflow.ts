import { Attributes } from '#identity/attributes.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import { notSupported, type ScimCall } from './scim-call.ts'

/** What changes of one group are kept apart by. */
export const groupKey = (id: string): string => `group ${id.toLowerCase()}`

export interface GroupRun {
  readonly name: string | undefined
  /** Those that the group is to have, and those that it is to have no more. */
  readonly attributes?: Attributes
  readonly cleared?: readonly string[]
  readonly params: Readonly<Record<string, string>> & { readonly groupname: string }
}

/** The workflow's user is the caller, with the attributes of the group. */
export async function runGroupWorkflow(parts: GatewayParts, call: ScimCall, run: GroupRun): Promise<void> {
  const { name, attributes = new Attributes(), cleared = [], params } = run
  if (name === undefined) throw notSupported('This gateway does not offer this for groups.')
  const user = { userID: call.exchange.subject.uid, attributes, groups: [] }
  await runWorkflow(parts, call, { name, user, cleared, params, subject: groupKey(params.groupname) })
}
