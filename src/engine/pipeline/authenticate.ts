import type { Chain, ChainOutcome, ChainRunner } from '#engine/pipeline/chain.ts'
import { addHeader, type Passage, type Step } from '#engine/pipeline/passage.ts'
import { applyResults } from '#engine/pipeline/result-actions.ts'
import type { Sessions } from '#engine/session/sessions.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { Subject } from '#identity/subject.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { GatewayResponse } from '#sdk/http.ts'

/** Who a caller is where no chain ran. Rules still decide what it may do. */
export const anonymous: Subject = {
  dn: Dn.parse('uid=Anonymous,o=Tremolo'),
  uid: 'Anonymous',
  attributes: Attributes.from({ uid: ['Anonymous'], objectClass: ['inetOrgPerson'] }),
  level: 0,
  chain: '',
}

/** Runs the URL's chain, unless the session was authenticated at its level or above already. */
export const authenticate =
  (chains: ChainRunner, sessions: Sessions): Step =>
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
    const outcome = await chains.run(chain, passage.request)
    if (outcome.kind === 'rejected') {
      const instead = applyResults(results.auFail, passage)
      if (instead !== undefined) return instead
      throw new GatewayError(refusalCode(outcome), outcome.reason, { headers: outcome.headers ?? {} })
    }
    passage.subject = outcome.subject
    await keepSession(sessions, passage)
    return applyResults(results.auSuccess, passage)
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

async function keepSession(sessions: Sessions, passage: Passage): Promise<void> {
  const { application, subject } = passage
  if (application?.cookies === undefined || subject === undefined || subject.level === 0) return
  addHeader(passage, 'set-cookie', await sessions.start(application, subject, passage.session))
}
