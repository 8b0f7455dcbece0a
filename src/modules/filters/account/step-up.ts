import { GatewayError } from '#kernel/errors.ts'
import { stepUpNeeded } from '#modules/filters/account/answer.ts'
import type { AccountSettings } from '#modules/filters/account/settings.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { provenAt, secondFactorSlot } from '#sdk/auth/second-factors.ts'
import type { SessionHandle } from '#sdk/auth/session.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

/** How long a login may go on after its second factor was shown. */
const loginMillis = 10 * 60_000

export interface StepUpParts {
  readonly settings: AccountSettings
  readonly host: Pick<FilterHost, 'secondFactors' | 'clock'>
}

/**
 * Makes sure that whoever changes second factors has just signed in, and with one of those they have: a password that
 * was stolen, or a session that was left open, is not enough. Gives the session.
 */
export async function requireStepUp(parts: StepUpParts, exchange: Exchange): Promise<SessionHandle> {
  const { session } = exchange
  if (session === undefined) throw new GatewayError('ACCESS_DENIED', 'second factors are changed in a session')
  const hasFactors = (await parts.host.secondFactors.of(exchange.subject)).length > 0
  if ((await askForLogin(parts, exchange, hasFactors)) !== undefined) throw stepUpNeeded('the login is too old')
  if (hasFactors && !(await hasProof(parts, session))) throw stepUpNeeded('no second factor was shown')
  return session
}

/** For a browser that signs in again; leads back to the portal. */
export async function stepUp(parts: StepUpParts, exchange: Exchange): Promise<GatewayResponse> {
  const { settings, host } = parts
  const { session, requireLogin, subject } = exchange
  if (session === undefined || requireLogin === undefined) throw stepUpNeeded('a step-up needs a session')
  const hasFactors = (await host.secondFactors.of(subject)).length > 0
  const maxAgeSeconds = settings.stepUpMinutes * 60
  const answer = await requireLogin(hasFactors ? settings.stepUpChain : settings.enrolChain, { maxAgeSeconds })
  if (answer !== undefined) return answer
  if (hasFactors && !(await hasProof(parts, session))) {
    throw new GatewayError('ACCESS_DENIED', `chain "${settings.stepUpChain}" did not ask for a second factor`)
  }
  return seeOther(settings.homeURL)
}

async function askForLogin(
  { settings }: StepUpParts,
  { requireLogin }: Exchange,
  hasFactors: boolean,
): Promise<GatewayResponse | undefined> {
  if (requireLogin === undefined) throw new GatewayError('ACCESS_DENIED', 'the application keeps no sessions')
  try {
    const maxAgeSeconds = settings.stepUpMinutes * 60
    return await requireLogin(hasFactors ? settings.stepUpChain : settings.enrolChain, { maxAgeSeconds })
  } catch (error) {
    if (error instanceof GatewayError && error.isRefusal) throw stepUpNeeded('the login is too old or too weak', error)
    throw error
  }
}

async function hasProof({ settings, host }: StepUpParts, session: SessionHandle): Promise<boolean> {
  const at = provenAt(await session.read(secondFactorSlot))
  if (at === undefined) return false
  return host.clock().getTime() - at.getTime() <= settings.stepUpMinutes * 60_000 + loginMillis
}
