import { createHash } from 'node:crypto'
import type { Issues, Path } from '#kernel/issues.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { AuthAttempt, AuthMechanism, AuthOutcome, LoginAttempt } from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { readLoginForm } from '#sdk/login/login-form.ts'
import { flag } from '#sdk/module/parameter-types.ts'
import type { ParsedParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import { html, type Markup, page } from '#sdk/page/page.ts'
import { durationText, type TextKey, textsFor } from '#sdk/page/page-texts.ts'
import type { FactorHost } from './factor-host.ts'
import type { NewSecondFactor, SecondFactor, SecondFactorKind } from './second-factor.ts'
import { secondFactorProof, secondFactorSlot } from './second-factor-proof.ts'
import type { FactorOwner } from './second-factors.ts'

/** The content of a page, and the state that its answer is checked against. */
interface FactorPage {
  readonly content: Markup
  readonly state: JsonObject
  /** A script of the mechanism, by the path after its URI. */
  readonly script?: string
}

interface FactorTurn {
  readonly request: GatewayRequest
  readonly owner: FactorOwner
  /** The address that the forms of the page post to. */
  readonly action: string
  /** The state of the latest page; empty for a first one. */
  readonly state: JsonObject
}

/** The part that differs by kind of factor. */
export interface FactorDialogue {
  readonly kind: SecondFactorKind
  readonly titles: { readonly ask: TextKey; readonly enrol: TextKey }
  /** The name of a factor that the user did not name. */
  readonly defaultName: string
  /** Asks for one of the factors, which are of this kind. */
  ask(turn: FactorTurn, factors: readonly SecondFactor[]): Promise<FactorPage>
  /** The factor that was used, and its next counter; undefined if none was. */
  check(
    turn: FactorTurn,
    form: URLSearchParams,
    factors: readonly SecondFactor[],
  ): Promise<{ readonly factor: SecondFactor; readonly counter: number } | undefined>
  enrol(turn: FactorTurn): Promise<FactorPage>
  /** The factor to store; undefined if the answer is wrong. */
  accept(turn: FactorTurn, form: URLSearchParams): Promise<Pick<NewSecondFactor, 'secret' | 'counter'> | undefined>
  serve?(request: GatewayRequest, pathInfo: string): GatewayResponse | undefined
}

const maxBody = 64 * 1024

/** What to do with a user without any second factor. */
type WithoutFactor = 'refuse' | 'enrol' | 'pass'

export const withoutFactorParameters = {
  enrol: flag({
    about: '`"true"`: users without any second factor set one up at their next login; otherwise they get 403.',
  }),
  passWithoutFactor: flag({
    about:
      '`"true"`: users without any second factor pass. Users who have one must use it, and users who have only another kind are refused. Not together with `enrol`.',
  }),
}

export function withoutFactor(
  { enrol, passWithoutFactor }: ParsedParameters<typeof withoutFactorParameters>,
  params: Params,
  issues: Issues,
): WithoutFactor {
  if (enrol && passWithoutFactor) {
    issues.error(params.pathOf('passWithoutFactor'), '"passWithoutFactor" and "enrol" exclude each other')
  }
  return enrol ? 'enrol' : passWithoutFactor ? 'pass' : 'refuse'
}

/** For configurations of OpenUnison, whose stored keys are not read. */
export function warnOfNewFactors(
  { enrol, passWithoutFactor }: ParsedParameters<typeof withoutFactorParameters>,
  path: Path,
  issues: Issues,
): void {
  const result = enrol
    ? 'users set up their second factor again at their next login, with their password alone'
    : passWithoutFactor
      ? 'users pass without a second factor until they set one up again'
      : 'users get 403 until they set one up again: add enrol "true" to let them do it at their next login'
  issues.warning(path, `the second factors that OpenUnison stored are not read; ${result}`)
}

/**
 * Requires a second factor, or a recovery code in its place, from the user that earlier mechanisms authenticated. A
 * user without any enrols here, passes or is rejected. A user with one of another kind is rejected: a stolen password
 * must not be enough to set one up or to get past it.
 */
export class SecondFactorLogin implements AuthMechanism {
  readonly #dialogue: FactorDialogue
  readonly #without: WithoutFactor
  readonly #host: Pick<FactorHost, 'secondFactors' | 'clock' | 'log'>

  constructor(
    dialogue: FactorDialogue,
    without: WithoutFactor,
    host: Pick<FactorHost, 'secondFactors' | 'clock' | 'log'>,
  ) {
    this.#dialogue = dialogue
    this.#without = without
    this.#host = host
  }

  async begin({ subject, login }: AuthAttempt): Promise<AuthOutcome> {
    if (subject === undefined)
      return {
        kind: 'rejected',
        reason:
          'a second factor requires a user who has logged in; put this mechanism after one that identifies the user',
      }
    const factors = await this.#host.secondFactors.of(subject)
    if (factors.length === 0 && this.#without === 'pass') return { kind: 'passed' }
    if (login === undefined) return { kind: 'rejected', reason: 'a second factor is for browsers', noCredential: true }
    return this.#refusal(factors) ?? { kind: 'challenge', response: seeOther(login.address), state: {} }
  }

  async proceed(attempt: LoginAttempt): Promise<AuthOutcome> {
    const { request, subject, state, login } = attempt
    const form = await readLoginForm(attempt, maxBody)
    if (subject === undefined) return { kind: 'rejected', reason: 'no user is logged in' }
    if (Array.isArray(state['codes'])) {
      if (form !== undefined) return this.#passed(this.#dialogue.kind)
      return this.#showCodes(state['codes'].map(String), login.address, request)
    }
    const factors = await this.#host.secondFactors.of(subject)
    // The last one was removed while the page was open.
    if (factors.length === 0 && this.#without === 'pass') return { kind: 'passed' }
    const refusal = this.#refusal(factors)
    if (refusal !== undefined) return refusal
    const turn: FactorTurn = { request, owner: subject, action: login.address, state }
    const own = factors.filter(({ kind }) => kind === this.#dialogue.kind)
    if (own.length === 0) return form === undefined ? this.#offer(turn, 200) : this.#enrol(attempt, turn, form)
    return form === undefined ? this.#ask(turn, own, 200) : this.#check(attempt, turn, form, own)
  }

  async serve(request: GatewayRequest, pathInfo: string): Promise<GatewayResponse | undefined> {
    return this.#dialogue.serve?.(request, pathInfo)
  }

  #refusal(factors: readonly SecondFactor[]): AuthOutcome | undefined {
    if (factors.some(({ kind }) => kind === this.#dialogue.kind)) return undefined
    if (factors.length === 0 && this.#without === 'enrol') return undefined
    const reason = factors.length === 0 ? 'has no second factor' : `has no second factor of kind ${this.#dialogue.kind}`
    return { kind: 'rejected', status: 403, reason }
  }

  async #check(
    { guard, subject }: LoginAttempt,
    turn: FactorTurn,
    form: URLSearchParams,
    own: readonly SecondFactor[],
  ): Promise<AuthOutcome> {
    const { secondFactors, log } = this.#host
    const { request, owner } = turn
    const counted = await guard.begin(`second factor of ${owner.identity}`, {
      credential: 'second factor',
      find: async () => ({ identity: owner.identity, login: owner.uid }),
    })
    if (!counted.allowed) {
      const seconds = counted.retryAfterSeconds
      const problem = textsFor(request)('login.tooMany', { time: durationText(seconds, request) })
      return this.#ask(turn, own, 429, problem, seconds)
    }
    let shown: SecondFactorKind | 'recovery' | undefined
    try {
      const found = await this.#dialogue.check(turn, form, own)
      if (found !== undefined && (await secondFactors.use(owner, found.factor, found.counter))) {
        shown = this.#dialogue.kind
      } else if (await secondFactors.useRecoveryCode(owner, form.get('code') ?? '', { requestId: request.id })) {
        log.info('a recovery code was used', { requestId: request.id, login: owner.uid })
        shown = 'recovery'
      }
    } catch (error) {
      await counted.abandoned()
      throw error
    }
    if (shown === undefined) {
      await counted.failed('wrong second factor', subject?.uid)
      return this.#ask({ ...turn, state: {} }, own, 401, textsFor(request)('factor.again'))
    }
    await counted.succeeded()
    return this.#passed(shown)
  }

  async #enrol({ login }: LoginAttempt, turn: FactorTurn, form: URLSearchParams): Promise<AuthOutcome> {
    const { kind, defaultName } = this.#dialogue
    const { owner, request } = turn
    const t = textsFor(request)
    const accepted = await this.#dialogue.accept(turn, form)
    if (accepted === undefined) return this.#offer(turn, 400, t('factor.again'))
    // One login enrols once, however often its form is sent.
    const factor: NewSecondFactor = { ...accepted, id: login.id, kind, name: defaultName }
    const added = await this.#host.secondFactors.add(owner, factor, { requestId: request.id, onlyAsFirst: true })
    if (!added.added) {
      const content = html`<p>${t('factor.exists')}</p><p><a href="${login.address}">${t('factor.existsContinue')}</a></p>`
      return { kind: 'challenge', response: page(409, t('factor.existsTitle'), content, { request, narrow: true }) }
    }
    return added.recoveryCodes === undefined
      ? this.#passed(kind)
      : { ...this.#showCodes(added.recoveryCodes, login.address, request), state: { codes: added.recoveryCodes } }
  }

  async #ask(
    turn: FactorTurn,
    own: readonly SecondFactor[],
    status: number,
    problem?: string,
    retryAfter?: number,
  ): Promise<AuthOutcome> {
    const t = textsFor(turn.request)
    const asked = await this.#dialogue.ask(turn, own)
    const content = html`${asked.content}
<details${problem === undefined ? '' : html` open`}>
<summary>${t('factor.recovery')}</summary>
<form method="post" action="${turn.action}">
<label for="recovery">${t('factor.recoveryCode')}</label>
<input id="recovery" name="code" type="text" autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="64" required>
<button type="submit">${t('factor.useCode')}</button>
</form>
</details>`
    const response = this.#page(status, this.#dialogue.titles.ask, { ...asked, content }, turn, problem)
    const headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
    return {
      kind: 'challenge',
      response: { ...response, headers: { ...response.headers, ...headers } },
      ...(asked.state === turn.state ? {} : { state: asked.state }),
    }
  }

  async #offer(turn: FactorTurn, status: number, problem?: string): Promise<AuthOutcome> {
    const offered = await this.#dialogue.enrol(turn)
    const response = this.#page(status, this.#dialogue.titles.enrol, offered, turn, problem)
    return { kind: 'challenge', response, ...(offered.state === turn.state ? {} : { state: offered.state }) }
  }

  #page(
    status: number,
    title: TextKey,
    { content, script }: Pick<FactorPage, 'content' | 'script'>,
    { action, request }: FactorTurn,
    problem: string | undefined,
  ): GatewayResponse {
    const alert = html`<p id="problem" role="alert"${problem === undefined ? html` hidden` : ''}>${problem ?? ''}</p>
${content}`
    const [uri = ''] = action.split('?', 1)
    return page(status, textsFor(request)(title), alert, {
      request,
      narrow: true,
      formsLeadAnywhere: true,
      script: script === undefined ? undefined : `${uri}${script}`,
    })
  }

  #showCodes(
    codes: readonly string[],
    action: string,
    request: GatewayRequest,
  ): Extract<AuthOutcome, { kind: 'challenge' }> {
    const t = textsFor(request)
    const content = html`<p>${t('factor.codesText')}</p>
<ul>${codes.map((code) => html`<li><code>${code}</code></li>\n`)}</ul>
<form method="post" action="${action}"><button type="submit">${t('factor.codesSaved')}</button></form>`
    const response = page(200, t('factor.codesTitle'), content, { request, narrow: true, formsLeadAnywhere: true })
    return { kind: 'challenge', response }
  }

  #passed(kind: SecondFactorKind | 'recovery'): AuthOutcome {
    return { kind: 'passed', session: { slots: { [secondFactorSlot]: secondFactorProof(kind, this.#host.clock()) } } }
  }
}

/** The stored part of a passkey as a second factor. */
interface PasskeyFactor {
  readonly id: string
  readonly publicKey: string
  readonly transports: readonly string[]
}

export function readPasskey({ secret }: Pick<SecondFactor, 'secret'>): PasskeyFactor {
  const { id, publicKey, transports } = secret
  return {
    id: String(id),
    publicKey: String(publicKey),
    transports: Array.isArray(transports) ? transports.map(String) : [],
  }
}

/** The owner as authenticators see it. The handle reveals nothing and is the same at every enrolment. */
export const passkeyUser = ({ identity, uid }: FactorOwner) => ({
  handle: createHash('sha256')
    .update(JSON.stringify(['passkey user', identity]))
    .digest(),
  name: uid,
  displayName: uid,
})
