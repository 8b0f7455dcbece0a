import type { Subject } from '#identity/subject.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { LoginAttempt } from '#sdk/auth/auth-mechanism.ts'
import type { LoginGuard } from '#sdk/auth/login.ts'
import { type FakeRequest, fakeRequest } from '#testing/modules/fake-request.ts'

export interface FakeAttempt extends FakeRequest {
  readonly subject?: Subject
  readonly state?: JsonObject
  readonly pathInfo?: string
  readonly guard?: LoginGuard
  readonly uri?: string
}

/** A guard that allows every attempt, and records the outcomes. */
export function openGuard(): LoginGuard & { readonly tries: string[] } {
  const tries: string[] = []
  return {
    tries,
    begin: async (account) => ({
      allowed: true,
      succeeded: async () => void tries.push(`${account} succeeded`),
      abandoned: async () => void tries.push(`${account} abandoned`),
      failed: async (reason, login) =>
        void tries.push(`${account} failed: ${reason}${login === undefined ? '' : ` (${login})`}`),
    }),
  }
}

/** A request of a login that waits for the mechanism under test. */
export function fakeAttempt({
  subject,
  state = {},
  pathInfo = '',
  guard,
  uri = '/auth/test',
  ...request
}: FakeAttempt): LoginAttempt {
  const id = 'l'.repeat(43)
  return {
    request: fakeRequest({ url: `https://portal.test${uri}`, ...request }),
    subject,
    root: 'o=Tremolo',
    login: { id, uri, address: `${uri}?login=${id}` },
    sessionId: 'session-1',
    state,
    pathInfo,
    guard: guard ?? openGuard(),
  }
}

/** A form post of a browser. */
export const formPost = (fields: Readonly<Record<string, string>>): FakeRequest => ({
  method: 'POST',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(fields).toString(),
})
