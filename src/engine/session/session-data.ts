import type { ChainStep } from '#engine/pipeline/chain.ts'
import { restoreSteps, restoreSubject, storeSteps, storeSubject } from '#engine/session/stored-subject.ts'
import type { Subject } from '#identity/subject.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'

/** What a session stores besides its times. */
export interface SessionData {
  readonly subject: Subject
  readonly authenticated: Date
  /** When the directory, or the login, last confirmed the subject. */
  readonly looked: Date
  /** The links to ask again with the directory. */
  readonly renewals: readonly ChainStep[]
  readonly address: string
  readonly agent: string
  /** Encrypted texts by slot. */
  readonly slots: Readonly<Record<string, string>>
}

export const storeSessionData = ({
  subject,
  authenticated,
  looked,
  renewals,
  address,
  agent,
  slots,
}: SessionData): JsonObject => ({
  subject: storeSubject(subject),
  authenticated: authenticated.getTime(),
  looked: looked.getTime(),
  renewals: storeSteps(renewals),
  address,
  agent,
  slots: { ...slots },
})

/** Undefined for anything else, as after a change of format: the session then counts as absent. */
export function restoreSessionData(data: JsonObject): SessionData | undefined {
  const { subject: stored, authenticated, address, agent } = data
  const subject = stored !== undefined && isJsonObject(stored) ? restoreSubject(stored) : undefined
  const renewals = restoreSteps(data['renewals'])
  if (subject === undefined || typeof authenticated !== 'number' || renewals === undefined) return undefined
  return {
    subject,
    authenticated: new Date(authenticated),
    looked: new Date(lookedOf(data)),
    renewals,
    address: typeof address === 'string' ? address : '',
    agent: typeof agent === 'string' ? agent : '',
    slots: slotsOf(data),
  }
}

/** In milliseconds. */
export const lookedOf = ({ looked, authenticated }: JsonObject): number =>
  Number(typeof looked === 'number' ? looked : authenticated)

export function slotsOf(data: JsonObject): Record<string, string> {
  const slots: Record<string, string> = Object.create(null)
  const stored = data['slots']
  if (stored === undefined || !isJsonObject(stored)) return slots
  for (const [name, value] of Object.entries(stored)) if (typeof value === 'string') slots[name] = value
  return slots
}
