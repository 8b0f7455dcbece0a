import type { Subject } from '#identity/subject.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import type { LoginGuard } from '#sdk/auth/login.ts'
import { type FakeRequest, fakeRequest } from '#testing/modules/fake-request.ts'

export interface FakeLogin {
  /** The mechanism's state, as the engine stores it. */
  state: JsonObject
  /** The counted events: `begin <account>`, `succeeded`, `failed <reason>`. */
  readonly counted: string[]
  /** Every further attempt is rejected. */
  locked: boolean
  begin(request?: FakeRequest): Promise<AuthOutcome>
  proceed(request?: FakeRequest & { readonly pathInfo?: string }): Promise<AuthOutcome>
  /** Posts a form. */
  post(fields: Readonly<Record<string, string>>): Promise<AuthOutcome>
}

export interface FakeLoginOptions {
  readonly subject?: Subject
  readonly uri?: string
  readonly origin?: string
  readonly id?: string
}

/** One login that waits for one mechanism, without the engine around it. */
export function fakeLogin(mechanism: AuthMechanism, options: FakeLoginOptions = {}): FakeLogin {
  const { subject, uri = '/auth/step', origin = 'https://portal.test', id = 'L'.repeat(43) } = options
  const step = { id, uri, address: `${uri}?login=${id}` }
  const counted: string[] = []
  const guard: LoginGuard = {
    async begin(account) {
      counted.push(`begin ${account}`)
      if (login.locked) return { allowed: false, retryAfterSeconds: 7, concealed: false }
      return {
        allowed: true,
        succeeded: async () => void counted.push('succeeded'),
        abandoned: async () => void counted.push('abandoned'),
        failed: async (reason) => void counted.push(`failed ${reason}`),
      }
    },
  }
  const keep = (outcome: AuthOutcome): AuthOutcome => {
    if (outcome.kind === 'challenge' && outcome.state !== undefined) login.state = outcome.state
    return outcome
  }
  const login: FakeLogin = {
    state: {},
    counted,
    locked: false,
    begin: async (request = { url: `${origin}/portal` }) =>
      keep(
        await mechanism.begin({
          request: fakeRequest(request),
          subject,
          root: 'o=Tremolo',
          login: step,
          sessionId: 's1',
        }),
      ),
    async proceed({ pathInfo = '', ...request } = {}) {
      if (mechanism.proceed === undefined) throw new Error('the mechanism does not proceed')
      const outcome = await mechanism.proceed({
        request: fakeRequest({ url: `${origin}${step.address}`, ...request }),
        subject,
        root: 'o=Tremolo',
        login: step,
        sessionId: 's1',
        guard,
        state: login.state,
        pathInfo,
      })
      return keep(outcome)
    },
    post: (fields) =>
      login.proceed({
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(fields).toString(),
      }),
  }
  return login
}

/** The page or redirect of a challenge. */
export function challengeOf(outcome: AuthOutcome): { status: number; location: string; body: string; csp: string } {
  if (outcome.kind !== 'challenge') throw new Error(`no challenge: ${JSON.stringify(outcome)}`)
  const { status, headers, body } = outcome.response
  return {
    status,
    location: String(headers['location'] ?? ''),
    body: String(body ?? ''),
    csp: String(headers['content-security-policy'] ?? ''),
  }
}
