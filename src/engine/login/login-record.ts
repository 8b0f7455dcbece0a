import type { ChainFrame, ChainStanding, Established } from '#engine/pipeline/chain.ts'
import { restoreSteps, restoreSubject, storeSteps, storeSubject } from '#engine/session/stored-subject.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { SessionContribution } from '#sdk/auth/session.ts'

/** The state of a login between two requests. */
export interface LoginRecord {
  readonly chain: string
  /** A path of the host, with its query. */
  readonly returnTo: string
  /** The public id of the future session. */
  readonly sessionId: string
  /** That session exists already, and will be re-authenticated. */
  readonly stepsUp: boolean
  readonly standing: ChainStanding
  /** The mechanism's. */
  readonly state: JsonObject
}

export function storeLogin({ chain, returnTo, sessionId, stepsUp, standing, state }: LoginRecord): JsonObject {
  return {
    chain,
    returnTo,
    sessionId,
    stepsUp,
    place: standing.place.map(({ chain, link, name, before }) => ({ chain, link, name, before: storeFound(before) })),
    found: storeFound(standing),
    state,
  }
}

/** Undefined for anything else, as after a change of format: the login then has to begin again. */
export function restoreLogin(data: JsonObject): LoginRecord | undefined {
  const { chain, returnTo, sessionId, stepsUp, place, found, state } = data
  if (typeof chain !== 'string' || typeof returnTo !== 'string' || typeof sessionId !== 'string') return undefined
  if (!Array.isArray(place) || state === undefined || !isJsonObject(state)) return undefined
  const frames = (place as readonly JsonValue[]).map(restoreFrame)
  const established = restoreFound(found)
  if (established === undefined || frames.length === 0 || !frames.every((frame) => frame !== undefined))
    return undefined
  const standing = { ...established, place: frames }
  return { chain, returnTo, sessionId, stepsUp: stepsUp === true, standing, state }
}

function restoreFrame(stored: JsonValue): ChainFrame | undefined {
  if (!isJsonObject(stored)) return undefined
  const { chain, link, name } = stored
  const before = restoreFound(stored['before'])
  if (typeof chain !== 'string' || typeof link !== 'number' || typeof name !== 'string' || before === undefined) {
    return undefined
  }
  return { chain, link, name, before }
}

const storeFound = ({ subject, session, renewals }: Established): JsonObject => ({
  subject: subject === undefined ? null : storeSubject(subject),
  slots: { ...session.slots },
  marks: [...(session.marks ?? [])],
  renewals: storeSteps(renewals),
})

function restoreFound(stored: JsonValue | undefined): Established | undefined {
  if (stored === undefined || !isJsonObject(stored)) return undefined
  const { subject, slots, marks } = stored
  const session: SessionContribution = {
    slots: slots !== undefined && isJsonObject(slots) ? slots : {},
    marks: Array.isArray(marks) ? marks.map(String) : [],
  }
  const renewals = restoreSteps(stored['renewals'])
  if (renewals === undefined) return undefined
  if (subject === null) return { subject: undefined, session, renewals }
  const restored = subject !== undefined && isJsonObject(subject) ? restoreSubject(subject) : undefined
  return restored === undefined ? undefined : { subject: restored, session, renewals }
}
