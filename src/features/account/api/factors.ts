import type {
  AccountFactor,
  AccountFactors,
  ConfirmPasskey,
  ConfirmTotp,
  EnrolledFactor,
  PasskeyEnrolment,
  RecoveryCodes,
  TotpEnrolment,
} from '#features/account/contract/account.ts'
import type { AccountHost } from '#features/account/host.ts'
import type { NewSecondFactor, SecondFactor, SecondFactorKind } from '#features/account/second-factors/second-factor.ts'
import { factorName } from '#features/account/second-factors/second-factor.ts'
import { passkeyUser, readPasskey } from '#features/account/second-factors/second-factor-login.ts'
import { provenAt, secondFactorSlot } from '#features/account/second-factors/second-factor-proof.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newSecret } from '#kernel/ids.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { qrCode, type Totp } from '#protocols/otp/totp.ts'
import { creationOptions, type RelyingParty, verifyCreation } from '#protocols/webauthn/passkeys.ts'
import { answer, badRequest, emptyAnswer, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody } from '#sdk/api/json-body.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { SessionHandle } from '#sdk/auth/session.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { confirmPasskeyBody, confirmTotpBody, renameFactorBody } from './api-description.ts'
import { type AccountSettings, stepUpKeyword } from './settings.ts'

export interface FactorParts {
  readonly settings: AccountSettings
  readonly totp: Totp
  readonly host: Pick<AccountHost, 'secondFactors' | 'clock' | 'log'>
}

const maxBody = 64 * 1024
type Confirmation = Pick<ConfirmTotp & ConfirmPasskey, 'enrolment'> & { readonly name?: string | undefined }

export async function listFactors({ settings, host }: FactorParts, { subject }: Exchange): Promise<GatewayResponse> {
  const factors = await host.secondFactors.of(subject)
  const recoveryCodes = await host.secondFactors.recoveryCodes(subject)
  return answer({ factors: factors.map(view), recoveryCodes, offers: settings.offers } satisfies AccountFactors)
}

export async function beginTotp(parts: FactorParts, exchange: Exchange): Promise<GatewayResponse> {
  const { settings, host, totp } = parts
  checkOffered(settings, 'totp')
  const session = await requireStepUp(parts, exchange)
  const secret = totp.newSecret()
  const uri = totp.uri(secret, settings.issuer, exchange.subject.uid)
  const begun = await beginEnrolment(session, 'totp', { secret }, host.clock)
  const expires = begun.expires.toISOString()
  return answer({ enrolment: begun.enrolment, secret, uri, qr: await qrCode(uri), expires } satisfies TotpEnrolment)
}

export async function confirmTotp(parts: FactorParts, exchange: Exchange): Promise<GatewayResponse> {
  const { host, totp } = parts
  const sent = await readJsonBody(exchange.request, confirmTotpBody, maxBody)
  const session = await requireStepUp(parts, exchange)
  const { secret } = await findEnrolment(session, 'totp', sent.enrolment, host.clock)
  const counter = typeof secret === 'string' ? totp.check(secret, sent.code, host.clock(), 0) : undefined
  if (counter === undefined || typeof secret !== 'string') throw badRequest('The code is not right.')
  return await enrol(parts, exchange, sent, { kind: 'totp', secret: { secret }, counter }, 'Authenticator app')
}

export async function beginPasskey(parts: FactorParts, exchange: Exchange): Promise<GatewayResponse> {
  const { settings, host } = parts
  checkOffered(settings, 'passkey')
  const session = await requireStepUp(parts, exchange)
  const { subject, request } = exchange
  const known = (await host.secondFactors.of(subject)).filter(({ kind }) => kind === 'passkey').map(readPasskey)
  const { options, challenge } = await creationOptions(siteOf(settings, request), passkeyUser(subject), known)
  const begun = await beginEnrolment(session, 'passkey', { challenge }, host.clock)
  const expires = begun.expires.toISOString()
  return answer({ enrolment: begun.enrolment, options, expires } satisfies PasskeyEnrolment)
}

export async function confirmPasskey(parts: FactorParts, exchange: Exchange): Promise<GatewayResponse> {
  const { settings, host } = parts
  const { request } = exchange
  const sent = await readJsonBody(request, confirmPasskeyBody, maxBody)
  const session = await requireStepUp(parts, exchange)
  const { challenge } = await findEnrolment(session, 'passkey', sent.enrolment, host.clock)
  const response = isJsonObject(sent.response) ? sent.response : {}
  const verified = await verifyCreation(siteOf(settings, request), String(challenge), response)
  if (!verified.ok) {
    host.log.info('a new passkey was refused', { requestId: request.id, reason: verified.reason })
    throw badRequest('The passkey was not accepted.')
  }
  const secret = { ...verified.credential }
  return await enrol(parts, exchange, sent, { kind: 'passkey', secret, counter: verified.counter }, 'Passkey')
}

export async function renameFactor({ host }: FactorParts, exchange: Exchange, id: string): Promise<GatewayResponse> {
  const { subject, request } = exchange
  const sent = factorName((await readJsonBody(request, renameFactorBody, maxBody)).name)
  if (sent === undefined) throw badRequest('A name must say something.')
  if (!(await host.secondFactors.rename(subject, id, sent))) throw notFound('no such factor')
  return emptyAnswer(204)
}

export async function removeFactor(parts: FactorParts, exchange: Exchange, id: string): Promise<GatewayResponse> {
  await requireStepUp(parts, exchange)
  const { subject, request } = exchange
  if (!(await parts.host.secondFactors.remove(subject, id, { requestId: request.id }))) throw notFound('no such factor')
  return emptyAnswer(204)
}

export async function renewCodes(parts: FactorParts, exchange: Exchange): Promise<GatewayResponse> {
  await requireStepUp(parts, exchange)
  const { subject, request } = exchange
  const recoveryCodes = await parts.host.secondFactors.renewRecoveryCodes(subject, { requestId: request.id })
  if (recoveryCodes === undefined) throw conflict('Recovery codes require a second factor. Add one first.')
  return answer({ recoveryCodes } satisfies RecoveryCodes)
}

/** The enrolment's id becomes the factor's, so that it is added once. */
async function enrol(
  { host }: FactorParts,
  { subject, request, session }: Exchange,
  { enrolment: id, name: written = '' }: Confirmation,
  made: Pick<NewSecondFactor, 'kind' | 'secret' | 'counter'>,
  defaultName: string,
): Promise<GatewayResponse> {
  const factor: NewSecondFactor = { ...made, id, name: factorName(written) ?? defaultName }
  const added = await host.secondFactors.add(subject, factor, { requestId: request.id })
  if (!added.added) throw conflict('You have too many second factors, or this one was added already.')
  if (session !== undefined) await endEnrolment(session)
  const known = (await host.secondFactors.of(subject)).find((one) => one.id === id)
  if (known === undefined) throw notFound('the factor is gone already')
  const { recoveryCodes } = added
  return answer(
    { factor: view(known), ...(recoveryCodes === undefined ? {} : { recoveryCodes }) } satisfies EnrolledFactor,
    201,
  )
}

const view = ({ id, kind, name, created, lastUsed }: SecondFactor): AccountFactor => ({
  id,
  kind,
  name,
  created: created.toISOString(),
  ...(lastUsed === undefined ? {} : { lastUsed: lastUsed.toISOString() }),
})

const siteOf = (
  { rpId, rpName, userVerification }: AccountSettings,
  { host, origin }: GatewayRequest,
): RelyingParty => ({ id: rpId ?? host, name: rpName, origin, userVerification })

function checkOffered({ offers }: AccountSettings, kind: SecondFactor['kind']): void {
  if (!offers.includes(kind)) throw notFound(`${kind} is not offered`)
}

const conflict = (publicText: string): GatewayError => new GatewayError('CONFLICT', publicText, { publicText })

const slot = 'filters.Account'
const lifeMillis = 10 * 60_000

interface Begun {
  readonly enrolment: string
  readonly expires: Date
}

/** Remembers the enrolment, sealed in the session, for checking the answer. A later enrolment replaces it. */
async function beginEnrolment(
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

/** Rejects an enrolment that is not under way in this session. */
async function findEnrolment(
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
  throw badRequest('This took too long, or was begun elsewhere. Begin again.')
}

const endEnrolment = (session: SessionHandle): Promise<void> => session.write(slot, undefined)

/** How long a login may take after the user showed a second factor. */
const loginMillis = 10 * 60_000

interface StepUpParts {
  readonly settings: AccountSettings
  readonly host: Pick<AccountHost, 'secondFactors' | 'clock'>
}

/**
 * Returns the session if the user has just signed in, with a second factor if they have one: a stolen password or an
 * open session is not enough to change second factors.
 */
async function requireStepUp(parts: StepUpParts, exchange: Exchange): Promise<SessionHandle> {
  const { session } = exchange
  if (session === undefined) throw new GatewayError('ACCESS_DENIED', 'second factors are changed in a session')
  const hasFactors = (await parts.host.secondFactors.of(exchange.subject)).length > 0
  if ((await askForLogin(parts, exchange, hasFactors)) !== undefined) throw stepUpNeeded('the login is too old')
  if (hasFactors && !(await hasProof(parts, session))) throw stepUpNeeded('no second factor was shown')
  return session
}

/** Lets the browser sign in again and redirects it to the portal. */
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

const stepUpNeeded = (detail: string, cause?: unknown): GatewayError =>
  new GatewayError('ACCESS_DENIED', detail, {
    publicText: 'Sign in again before you change this.',
    keyword: stepUpKeyword,
    cause,
  })
