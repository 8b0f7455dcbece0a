import { entryKey, readDevices, writeDevices } from '#engine/login/device-cookie.ts'
import type { LoginAudit } from '#engine/login/login-audit.ts'
import type { LoginMeter } from '#engine/login/login-meter.ts'
import { goOn, refusedLogin } from '#engine/login/login-pages.ts'
import type { LoginRecord } from '#engine/login/login-record.ts'
import type { ChainOutcome } from '#engine/pipeline/chain.ts'
import { addHeader, type Passage } from '#engine/pipeline/passage.ts'
import { applyResults } from '#engine/pipeline/result-actions.ts'
import type { Application, MatchedUrl, Routes } from '#engine/pipeline/routes.ts'
import type { Sessions } from '#engine/session/sessions.ts'
import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import type { Subject } from '#identity/subject.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/filter/http.ts'

interface Parts {
  readonly routes: Routes
  readonly sessions: Sessions
  readonly loginAudit: LoginAudit
  readonly loginMeter: LoginMeter
  readonly loginSecrets: SecretBox
  readonly clock: Clock
  readonly log: Logger
}

/** What happens when the last link of a chain has had its say. */
export class LoginCompletion {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  applicationOf(record: LoginRecord, request: Pick<GatewayRequest, 'host'>): Application | undefined {
    return this.#target(record, request)?.application
  }

  /** `known` is whom the mechanisms before the one that refused established. */
  async refuse(
    rejection: Extract<ChainOutcome, { kind: 'rejected' }>,
    record: LoginRecord,
    known: Subject | undefined,
    passage: Passage,
  ): Promise<GatewayResponse> {
    const { request } = passage
    const { loginAudit, loginMeter } = this.#parts
    const target = this.#target(record, request)
    const { chain, returnTo } = record
    if (target !== undefined) passage.application = target.application
    loginMeter.counted(chain, 'refused')
    await loginAudit.note({
      action: 'refuse',
      request,
      login: known?.uid ?? 'unknown',
      chain,
      application: target?.application.name ?? '',
      reason: rejection.reason,
    })
    const instead = applyResults(target?.url.results.auFail, passage)
    return instead ?? refusedLogin(rejection.status ?? 401, returnTo)
  }

  /**
   * Starts the session, or authenticates the one that is there anew, under a new secret, and sends the browser to where it
   * wanted to go. What was begun for one session never becomes another's.
   */
  async complete(
    outcome: Extract<ChainOutcome, { kind: 'authenticated' }>,
    record: LoginRecord,
    passage: Passage,
  ): Promise<GatewayResponse> {
    const { request } = passage
    const { sessions, loginAudit, loginMeter, loginSecrets, clock, log } = this.#parts
    const { chain, returnTo, sessionId, stepsUp } = record
    const { subject } = outcome
    const target = this.#target(record, request)
    const application = target?.application
    if (target === undefined || application?.cookies === undefined) return seeOther(returnTo)
    passage.application = application
    const before = await sessions.find(application, request)
    const isHere = before?.handle.id === sessionId
    const isSame = before?.subject.identity === subject.identity
    if (stepsUp && !(isHere && isSame)) {
      log.info('the step-up starts again: the session ended, or belongs to another user', {
        requestId: request.id,
        chain,
      })
      if (before !== undefined) await sessions.end(before)
      addHeader(passage, 'set-cookie', sessions.clearing(application.cookies))
      return seeOther(returnTo)
    }
    await loginAudit.write({
      action: 'issue',
      request,
      login: subject.uid,
      chain,
      application: application.name,
      sessionId,
    })
    const started = await sessions.start(application, {
      request,
      subject,
      before,
      id: sessionId,
      contribution: outcome.session,
      renewals: outcome.renewals,
    })
    loginMeter.counted(chain, 'signed-in')
    passage.subject = subject
    addHeader(passage, 'set-cookie', started.cookie)
    if (subject.link !== undefined) {
      const devices = await readDevices(request, application.cookies, { box: loginSecrets, clock })
      const entry = entryKey(subject.identity)
      addHeader(
        passage,
        'set-cookie',
        await writeDevices(devices, entry, application.cookies, { box: loginSecrets, clock }),
      )
    }
    const instead = applyResults(target.url.results.auSuccess, passage)
    if (instead !== undefined) return instead
    const foreign = header(request, 'sec-fetch-site') === 'cross-site'
    return foreign && application.cookies.sameSite === 'Strict' ? goOn(returnTo) : seeOther(returnTo)
  }

  #target({ returnTo }: LoginRecord, { host }: Pick<GatewayRequest, 'host'>): MatchedUrl | undefined {
    return this.#parts.routes.find(host, returnTo.split('?', 1)[0] ?? '/')
  }
}
