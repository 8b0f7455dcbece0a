import type { SecondFactorKind } from '#domain/second-factor.ts'
import type { Clock } from '#kernel/clock.ts'
import { newSecret } from '#kernel/ids.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { refused } from '#modules/filters/account/answer.ts'
import type { SessionHandle } from '#sdk/session.ts'

const slot = 'filters.Account'
const lifeMillis = 10 * 60_000

export interface Begun {
  readonly enrolment: string
  readonly expires: Date
}

/** Remembers, in the session and sealed, what an answer will be checked against. A later enrolment replaces it. */
export async function beginEnrolment(
  session: SessionHandle,
  kind: SecondFactorKind,
  data: JsonObject,
  clock: Clock,
): Promise<Begun> {
  const enrolment = newSecret()
  const expires = new Date(clock().getTime() + lifeMillis)
  await session.write(slot, { enrolment, kind, data, expires: expires.toISOString() })
  return { enrolment, expires }
}

/** Refuses what is not under way in this session. */
export async function findEnrolment(
  session: SessionHandle,
  kind: SecondFactorKind,
  enrolment: string,
  clock: Clock,
): Promise<JsonObject> {
  const kept = await session.read(slot)
  if (kept !== undefined && isJsonObject(kept)) {
    const { data, expires } = kept
    const isThis = kept['enrolment'] === enrolment && kept['kind'] === kind && new Date(String(expires)) > clock()
    if (isThis && data !== undefined && isJsonObject(data)) return data
  }
  throw refused('This took too long, or was begun elsewhere. Begin again.')
}

export const endEnrolment = (session: SessionHandle): Promise<void> => session.write(slot, undefined)
