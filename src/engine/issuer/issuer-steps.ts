import type { Interaction, KoaContextWithOIDC, Provider } from 'oidc-provider'
import { type IssuerCall, presentCall } from '#engine/issuer/issuer-call.ts'
import type { IssuerPages } from '#engine/issuer/issuer-pages.ts'
import type { Clock } from '#kernel/clock.ts'
import type { IssuerConfig } from '#sdk/auth/issuer.ts'

export interface StepParts {
  readonly config: IssuerConfig
  readonly pages: IssuerPages
  readonly clock: Clock
}

/** For which somebody must have logged in after the application asked. */
const freshReasons = ['login_prompt', 'max_age']
/** Logging in by our chain mends these; what else the application may want of a login is not to be had. */
const mendable = new Set(['no_session', 'level', ...freshReasons])
const stepPath = /^\/interaction\/([\w-]{1,64})$/

/** Whether the path is one of a person who has to do something before the provider goes on. */
export const isStep = (path: string): boolean => stepPath.test(path)

/** Sends the browser to log in, and on to the provider when it comes back. */
export async function takeStep(provider: Provider, ctx: KoaContextWithOIDC, parts: StepParts): Promise<void> {
  const call = presentCall()
  if (call === undefined) throw new Error('a step outside of a request')
  let details: Interaction
  try {
    details = await provider.interactionDetails(ctx.req, ctx.res)
  } catch {
    ctx.status = 400
    return parts.pages.failed(
      ctx,
      'This login has ended, or was begun in another browser. Begin again at the application.',
    )
  }
  const result = await resultOf(details, call, parts)
  if (result === undefined) {
    ctx.status = 204
    return
  }
  const address = await provider.interactionResult(ctx.req, ctx.res, result)
  ctx.redirect(address)
  ctx.status = 303
}

/** Undefined when the person was sent elsewhere by `call.answer`. */
async function resultOf(details: Interaction, call: IssuerCall, { config, clock }: StepParts) {
  const { name, reasons } = details.prompt
  if (name === 'consent') return { consent: {} }
  const trust = config.trusts.find(({ clientId }) => clientId === details.params['client_id'])
  const refused = { error: 'login_required', error_description: 'the requested login is not available' }
  if (trust === undefined || reasons.some((reason) => !mendable.has(reason))) return refused
  const isFresh = reasons.some((reason) => freshReasons.includes(reason))
  const seconds = Math.max(0, clock().getTime() / 1000 - details.iat)
  const answer = await call.exchange.requireLogin?.(trust.chain, isFresh ? { maxAgeSeconds: seconds } : {})
  if (answer !== undefined) {
    call.answer = answer
    return undefined
  }
  const { person } = call
  if (person === undefined) return refused
  return { login: { accountId: person.account.sub, ts: Math.floor(person.authenticated.getTime() / 1000) } }
}
