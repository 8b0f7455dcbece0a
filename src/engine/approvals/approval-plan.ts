import { Dn } from '#identity/dn.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { type Identity, storedIdentity } from '#identity/identity.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Rule } from '#sdk/auth/rule.ts'
import type { MailText } from '#sdk/notifier/mail.ts'

/** Users with an interest in the decision, who therefore may not make it. */
export interface Involved {
  readonly identities: readonly Identity[]
  /** Logins of involved users without a known directory identity. */
  readonly names: readonly string[]
}

/** The rules of an open approval, from opening to end. Stored with the approval. */
export interface ApprovalPlan {
  /** Who may decide now. */
  readonly approvers: readonly Rule[]
  /** Who requested it, in whose name, and the subject. */
  readonly involved: Involved
  readonly escalations: readonly { readonly approvers: readonly Rule[]; readonly onlyIf?: Rule }[]
  readonly failure?: readonly Rule[]
  readonly mail?: MailText & { readonly address: string }
}

export function storePlan(plan: ApprovalPlan): JsonObject {
  const { approvers, involved, escalations, failure, mail } = plan
  return {
    approvers: approvers.map(storeRule),
    involved: [...involved.names],
    identities: [...involved.identities],
    escalations: escalations.map(({ approvers: next, onlyIf }) => ({
      approvers: next.map(storeRule),
      ...(onlyIf === undefined ? {} : { onlyIf: storeRule(onlyIf) }),
    })),
    ...(failure === undefined ? {} : { failure: failure.map(storeRule) }),
    ...(mail === undefined ? {} : { mail: { ...mail } }),
  }
}

/** Throws an Error for anything that `storePlan` did not store. */
export function readPlan(stored: JsonValue): ApprovalPlan {
  const plan = objectOf(stored)
  const { failure, mail } = plan
  return {
    approvers: listOf(plan['approvers']).map(readRule),
    involved: {
      names: listOf(plan['involved']).map(textOf),
      identities: listOf(plan['identities']).map((value) => storedIdentity(textOf(value))),
    },
    escalations: listOf(plan['escalations']).map((value) => {
      const escalation = objectOf(value)
      const { onlyIf } = escalation
      const approvers = listOf(escalation['approvers']).map(readRule)
      return onlyIf === undefined ? { approvers } : { approvers, onlyIf: readRule(onlyIf) }
    }),
    ...(failure === undefined ? {} : { failure: listOf(failure).map(readRule) }),
    ...(mail === undefined ? {} : { mail: readMail(mail) }),
  }
}

function storeRule(rule: Rule): JsonObject {
  const { scope, constraint } = rule
  return scope === 'custom' ? { scope, constraint, name: rule.name, params: [...rule.params] } : { scope, constraint }
}

function readRule(stored: JsonValue): Rule {
  const rule = objectOf(stored)
  const constraint = textOf(rule['constraint'])
  const { scope } = rule
  switch (scope) {
    case 'dn':
      return { scope, constraint, dn: Dn.parse(constraint) }
    case 'filter':
      return { scope, constraint, filter: parseFilter(constraint) }
    case 'group':
    case 'dynamicGroup':
      return { scope, constraint, group: Dn.parse(constraint) }
    case 'custom':
      return { scope, constraint, name: textOf(rule['name']), params: listOf(rule['params']).map(textOf) }
    default:
      throw new Error('a stored rule has no scope that is known')
  }
}

function readMail(stored: JsonValue): MailText & { readonly address: string } {
  const mail = objectOf(stored)
  const { html, notifier } = mail
  return {
    subject: textOf(mail['subject']),
    text: textOf(mail['text']),
    address: textOf(mail['address']),
    ...(html === undefined ? {} : { html: textOf(html) }),
    ...(notifier === undefined ? {} : { notifier: textOf(notifier) }),
  }
}

function objectOf(value: JsonValue | undefined): JsonObject {
  if (!isJsonObject(value)) throw new Error('a stored approval plan is damaged: an object is missing')
  return value
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  if (!Array.isArray(value)) throw new Error('a stored approval plan is damaged: a list is missing')
  return value
}

function textOf(value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw new Error('a stored approval plan is damaged: a text is missing')
  return value
}
