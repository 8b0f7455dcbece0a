import { z } from 'zod'
import { storedIdentity } from '#identity/identity.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { plainRule, type Rule, ruleScopes } from '#sdk/rule/rule.ts'
import type { Parties } from './decision-influence.ts'

const text = z.string()
const texts = z.array(text).readonly()

const rule = z
  .object({
    scope: z.enum(ruleScopes),
    constraint: text,
    name: text.exactOptional(),
    params: texts.exactOptional(),
    about: z.object({ login: text, identity: text.transform(storedIdentity) }).exactOptional(),
  })
  .transform(({ scope, constraint, name = '', params = [], about }): Rule => {
    if (scope !== 'custom') return plainRule(scope, constraint)
    return { scope, constraint, name, params, ...(about && { about }) }
  })

const rules = z.array(rule).readonly()

const parties = z.object({
  identities: z.array(text.transform(storedIdentity)).readonly(),
  names: texts,
})

const approvalPlan = z.object({
  /** Who may decide now. */
  approvers: rules,
  /** Given to these users: they may decide, and no others that the rules name. */
  assigned: z.array(text.transform(storedIdentity)).readonly().exactOptional(),
  /** Operators who chose its approver, and therefore may never decide it. */
  reassignedBy: parties.exactOptional(),
  /** Users with an interest in the decision, who therefore may not make it: who requested it, in whose name, and the subject. */
  involved: parties,
  escalations: z.array(z.object({ approvers: rules, onlyIf: rule.exactOptional() })).readonly(),
  failure: rules.exactOptional(),
  mail: z
    .object({
      text,
      address: text,
      html: text.exactOptional(),
      notifier: text.exactOptional(),
      channel: text.exactOptional(),
      required: z.boolean().exactOptional(),
    })
    .exactOptional(),
})

/** The rules of an open approval, from opening to end. Stored with the approval. */
export type ApprovalPlan = z.output<typeof approvalPlan>

export const storePlan = ({
  approvers,
  assigned,
  reassignedBy,
  involved,
  escalations,
  failure,
  mail,
}: ApprovalPlan): JsonObject => ({
  approvers: approvers.map(storeRule),
  ...(assigned && { assigned: [...assigned] }),
  ...(reassignedBy && { reassignedBy: storeParties(reassignedBy) }),
  involved: storeParties(involved),
  escalations: escalations.map(({ approvers: next, onlyIf }) => ({
    approvers: next.map(storeRule),
    ...(onlyIf && { onlyIf: storeRule(onlyIf) }),
  })),
  ...(failure && { failure: failure.map(storeRule) }),
  ...(mail && { mail: { ...mail } }),
})

const storeParties = ({ identities, names }: Parties): JsonObject => ({
  identities: [...identities],
  names: [...names],
})

function storeRule(rule: Rule): JsonObject {
  const { scope, constraint } = rule
  if (scope !== 'custom') return { scope, constraint }
  const { name, params, about } = rule
  const user = about && { login: about.login, identity: about.identity }
  return { scope, constraint, name, params: [...params], ...(user && { about: user }) }
}

/** Throws an Error for anything that `storePlan` did not store. */
export const readPlan = (stored: JsonValue): ApprovalPlan => approvalPlan.parse(stored)
