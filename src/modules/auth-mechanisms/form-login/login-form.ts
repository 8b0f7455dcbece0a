import { setTimeout as wait } from 'node:timers/promises'
import type { UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { DirectoryLogin, FoundLogin } from '#modules/auth-mechanisms/form-login/directory-login.ts'
import { type LoginPage, loginPage } from '#modules/auth-mechanisms/form-login/login-page.ts'
import type { AuthAttempt, AuthMechanism, AuthOutcome, LoginAttempt } from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { readForm } from '#sdk/filter/read-form.ts'

const maxBody = 16 * 1024
const maxUser = 256
const maxPassword = 1024
/** Whoever fails is answered at a multiple of this, so that the time does not tell why. */
const answerEveryMillis = 250

/** Also the answer to a user whose account is locked under another of its names. */
const wrong = 'The user name or password is wrong, or too many attempts failed. Check both, or try again later.'

export class LoginForm implements AuthMechanism {
  readonly #page: LoginPage
  readonly #people: DirectoryLogin

  constructor(page: LoginPage, people: DirectoryLogin) {
    this.#page = page
    this.#people = people
  }

  async begin({ login }: AuthAttempt): Promise<AuthOutcome> {
    if (login === undefined) return { kind: 'rejected', reason: 'a login form is for browsers', noCredential: true }
    return { kind: 'challenge', response: seeOther(login.address) }
  }

  async proceed(attempt: LoginAttempt): Promise<AuthOutcome> {
    const { request, pathInfo } = attempt
    if (pathInfo !== '') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
    if (request.method === 'GET' || request.method === 'HEAD') return this.#ask(attempt, 200)
    if (request.method !== 'POST') {
      throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'GET, HEAD, POST' } })
    }
    const started = performance.now()
    const form = await readForm(request, maxBody)
    const user = (form.get('user') ?? '').trim()
    const password = form.get('pwd') ?? ''
    if (user === '' || password === '' || user.length > maxUser || password.length > maxPassword) {
      return this.#refuse(attempt, started)
    }
    return this.#check(attempt, user, password, started)
  }

  async #check(attempt: LoginAttempt, user: string, password: string, started: number): Promise<AuthOutcome> {
    const { guard, root } = attempt
    let found: FoundLogin | undefined
    const find = async (): Promise<UserRef | undefined> => {
      found = await this.#people.find(user, root)
      return 'subject' in found ? { identity: found.subject.identity, login: found.subject.uid } : undefined
    }
    const turn = await guard.begin(user, { find })
    if (!turn.allowed) {
      if (turn.concealed) {
        await this.#people.checkNobody(password, root)
        return this.#refuse(attempt, started)
      }
      const seconds = turn.retryAfterSeconds
      return this.#ask(attempt, 429, `Too many attempts failed. Try again in ${timeText(seconds)}.`, seconds)
    }
    let checked: Awaited<ReturnType<DirectoryLogin['check']>>
    try {
      const known = found ?? (await this.#people.find(user, root))
      checked = await this.#people.check(known, password, root, attempt.request.isLocal === true)
    } catch (error) {
      await turn.abandoned()
      throw error
    }
    if (checked.ok) {
      await turn.succeeded()
      return { kind: 'authenticated', subject: checked.subject }
    }
    await turn.failed(checked.reason, checked.login)
    return this.#refuse(attempt, started)
  }

  async #refuse(attempt: LoginAttempt, started: number): Promise<AuthOutcome> {
    const passed = performance.now() - started
    await wait(answerEveryMillis - (passed % answerEveryMillis))
    return this.#ask(attempt, 401, wrong)
  }

  #ask({ login }: LoginAttempt, status: number, problem?: string, retryAfter?: number): AuthOutcome {
    const response = loginPage(this.#page, { action: login.address, status, problem })
    if (retryAfter === undefined) return { kind: 'challenge', response }
    const headers = { ...response.headers, 'retry-after': String(retryAfter) }
    return { kind: 'challenge', response: { ...response, headers } }
  }
}

const timeText = (seconds: number): string =>
  seconds < 90 ? `${seconds} ${seconds === 1 ? 'second' : 'seconds'}` : `${Math.ceil(seconds / 60)} minutes`
