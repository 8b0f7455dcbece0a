import * as z from 'zod'
import type {
  AccountFactor,
  AccountFactors,
  ConfirmPasskey,
  ConfirmTotp,
  EnrolledFactor,
  PasskeyEnrolment,
  RecoveryCodes,
  RenameFactor,
  TotpEnrolment,
} from '#contract/account.ts'
import type { NewSecondFactor, SecondFactor, SecondFactorKind } from '#domain/second-factor.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newSecret } from '#kernel/ids.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { answer, noContent, notFound, refused } from '#modules/filters/account/answer.ts'
import type { AccountSettings } from '#modules/filters/account/settings.ts'
import { requireStepUp } from '#modules/filters/account/step-up.ts'
import { readJsonBody } from '#modules/shared/http/json-body.ts'
import { passkeyUser, readPasskey } from '#modules/shared/login/passkey-factor.ts'
import { qrCode, type Totp } from '#protocols/otp/totp.ts'
import { creationOptions, type RelyingParty, verifyCreation } from '#protocols/webauthn/passkeys.ts'
import { factorName } from '#sdk/auth/second-factors.ts'
import type { SessionHandle } from '#sdk/auth/session.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/filter/http.ts'
import type { ModuleHost } from '#sdk/module/host.ts'

export interface FactorParts {
  readonly settings: AccountSettings
  readonly totp: Totp
  readonly host: Pick<ModuleHost, 'secondFactors' | 'clock' | 'log'>
}

const maxBody = 64 * 1024
const name = z.string().max(200).optional()
const enrolment = z.string().max(64)
const renameSchema = z.strictObject({ name: z.string().max(200) }) satisfies z.ZodType<RenameFactor>
const totpSchema = z.strictObject({ enrolment, code: z.string().max(16), name })
const passkeySchema = z.strictObject({ enrolment, response: z.looseObject({}), name })
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
  const sent = await readJsonBody(exchange.request, totpSchema, maxBody)
  const session = await requireStepUp(parts, exchange)
  const { secret } = await findEnrolment(session, 'totp', sent.enrolment, host.clock)
  const counter = typeof secret === 'string' ? totp.check(secret, sent.code, host.clock(), 0) : undefined
  if (counter === undefined || typeof secret !== 'string') throw refused('The code is not right.')
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
  const sent = await readJsonBody(request, passkeySchema, maxBody)
  const session = await requireStepUp(parts, exchange)
  const { challenge } = await findEnrolment(session, 'passkey', sent.enrolment, host.clock)
  const response = isJsonObject(sent.response) ? sent.response : {}
  const verified = await verifyCreation(siteOf(settings, request), String(challenge), response)
  if (!verified.ok) {
    host.log.info('a new passkey was refused', { requestId: request.id, reason: verified.reason })
    throw refused('The passkey was not accepted.')
  }
  const secret = { ...verified.credential }
  return await enrol(parts, exchange, sent, { kind: 'passkey', secret, counter: verified.counter }, 'Passkey')
}

export async function renameFactor({ host }: FactorParts, exchange: Exchange, id: string): Promise<GatewayResponse> {
  const { subject, request } = exchange
  const sent = factorName((await readJsonBody(request, renameSchema, maxBody)).name)
  if (sent === undefined) throw refused('A name must say something.')
  if (!(await host.secondFactors.rename(subject, id, sent))) throw notFound('no such factor')
  return noContent
}

export async function removeFactor(parts: FactorParts, exchange: Exchange, id: string): Promise<GatewayResponse> {
  await requireStepUp(parts, exchange)
  const { subject, request } = exchange
  if (!(await parts.host.secondFactors.remove(subject, id, { requestId: request.id }))) throw notFound('no such factor')
  return noContent
}

export async function renewCodes(parts: FactorParts, exchange: Exchange): Promise<GatewayResponse> {
  await requireStepUp(parts, exchange)
  const { subject, request } = exchange
  const recoveryCodes = await parts.host.secondFactors.renewRecoveryCodes(subject, { requestId: request.id })
  if (recoveryCodes === undefined) throw conflict('Recovery codes require a second factor. Add one first.')
  return answer({ recoveryCodes } satisfies RecoveryCodes)
}

/** The enrolment's own id is the factor's, so that it is added once. */
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

/** Remembers, in the session and sealed, what an answer will be checked against. A later enrolment replaces it. */
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

/** Refuses what is not under way in this session. */
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
  throw refused('This took too long, or was begun elsewhere. Begin again.')
}

const endEnrolment = (session: SessionHandle): Promise<void> => session.write(slot, undefined)
