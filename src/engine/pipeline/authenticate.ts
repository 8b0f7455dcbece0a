import type { BegunOutcome, LoginDesk } from '#engine/login/login-desk.ts'
import type { Chain, ChainOutcome } from '#engine/pipeline/chain.ts'
import { addHeader, type Passage, type Step } from '#engine/pipeline/passage.ts'
import { applyResults } from '#engine/pipeline/result-actions.ts'
import type { Sessions } from '#engine/session/sessions.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { ownIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

/** Who a caller is where no chain ran. Rules still decide what it may do. */
export const anonymous: Subject = {
  dn: Dn.parse('uid=Anonymous,o=Tremolo'),
  identity: ownIdentity('anonymous'),
  uid: 'Anonymous',
  attributes: Attributes.from({ uid: ['Anonymous'], objectClass: ['inetOrgPerson'] }),
  level: 0,
  chain: '',
}

/** Runs the URL's chain, unless the session was authenticated at its level or above already. */
export const authenticate =
  (desk: LoginDesk, sessions: Sessions): Step =>
  async (passage) => {
    const { url: match, session } = passage
    if (match === undefined) throw new Error('authentication needs a matched request')
    const { chain, results } = match.url
    if (session !== undefined && session.subject.level >= (chain?.level ?? 0)) {
      passage.subject = session.subject
      return undefined
    }
    if (chain === undefined) {
      passage.subject = anonymous
      return undefined
    }
    const preflight = answerPreflight(chain, passage)
    if (preflight !== undefined) return preflight
    const outcome = await desk.begin(chain, passage)
    if (outcome.kind === 'answered') return outcome.response
    if (outcome.kind === 'rejected') {
      const instead = applyResults(results.auFail, passage)
      if (instead !== undefined) return instead
      throw refusal(outcome)
    }
    passage.subject = outcome.subject
    await keepSession(sessions, passage, outcome)
    return applyResults(results.auSuccess, passage)
  }

export function refusal(rejection: Extract<ChainOutcome, { kind: 'rejected' }>): GatewayError {
  return new GatewayError(refusalCode(rejection), rejection.reason, { headers: rejection.headers ?? {} })
}

function refusalCode({ status, noCredential }: Extract<ChainOutcome, { kind: 'rejected' }>): ErrorCode {
  if (status === 403) return 'ACCESS_DENIED'
  return noCredential === true ? 'AUTH_REQUIRED' : 'AUTH_REJECTED'
}

function answerPreflight(chain: Chain, passage: Passage): GatewayResponse | undefined {
  for (const { mechanism } of chain.links) {
    const headers = mechanism.responseHeaders?.(passage.request)
    if (headers !== undefined) {
      for (const [name, value] of Object.entries(headers)) addHeader(passage, name, value)
    }
    const response = mechanism.preflight?.(passage.request)
    if (response !== undefined) return response
  }
  return undefined
}

/** For a chain that needed nobody to be asked. */
async function keepSession(
  sessions: Sessions,
  passage: Passage,
  { sessionId, session: contribution, renewals }: Extract<BegunOutcome, { kind: 'authenticated' }>,
): Promise<void> {
  const { application, subject, request, session: before } = passage
  if (application?.cookies === undefined || subject === undefined || subject.level === 0) return
  const isSame = before?.subject.identity === subject.identity
  const id = sessionId === undefined || (before !== undefined && !isSame) ? {} : { id: sessionId }
  const started = await sessions.start(application, { request, subject, before, contribution, renewals, ...id })
  addHeader(passage, 'set-cookie', started.cookie)
  passage.session = started.session
}
