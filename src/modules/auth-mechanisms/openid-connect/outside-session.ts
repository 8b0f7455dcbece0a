import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { SessionContribution } from '#sdk/auth/session.ts'

export interface OutsideSession {
  readonly issuer: string
  readonly clientId: string
  readonly sub: string
  readonly sid: string | undefined
  readonly idToken: string
}

/** By which sessions are found that the issuer ends. */
export const sessionMark = (
  { issuer, clientId }: Pick<OutsideSession, 'issuer' | 'clientId'>,
  kind: 'sid' | 'sub',
  value: string,
): string => JSON.stringify(['openid', issuer, clientId, kind, value])

const slotOf = (mechanism: string): string => `openid:${mechanism.replaceAll(/[^\w.-]/g, '_').slice(0, 80)}`

/** What the session remembers of the login elsewhere. */
export function contributionOf(mechanism: string, outside: OutsideSession): SessionContribution {
  const { sub, sid, idToken } = outside
  const marks = [sessionMark(outside, 'sub', sub)]
  if (sid !== undefined) marks.push(sessionMark(outside, 'sid', sid))
  return { slots: { [slotOf(mechanism)]: { idToken } satisfies JsonObject }, marks }
}

/** The id_token of a login by that mechanism; undefined when the session has none. */
export async function idTokenIn(
  session: { read(slot: string): Promise<JsonValue | undefined> },
  mechanism: string,
): Promise<string | undefined> {
  const slot = await session.read(slotOf(mechanism))
  const token = slot !== undefined && isJsonObject(slot) ? slot['idToken'] : undefined
  return typeof token === 'string' ? token : undefined
}
