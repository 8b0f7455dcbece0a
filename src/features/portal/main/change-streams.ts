import { Readable } from 'node:stream'
import { findPerson } from '#features/portal/console/people.ts'
import { isAdministrator, type MainParts, userOf } from '#features/portal/front/main-parts.ts'
import { type Identity, isUser } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Closable } from '#kernel/scope.ts'
import { badRequest } from '#sdk/api/json-answer.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { approvalUser } from '#workflows/record/operator.ts'
import type { RunListener } from '#workflows/runs/run-listener.ts'

/** A client opens the next one then, and is authenticated again. */
const lifeMillis = 5 * 60_000
const heartbeatMillis = 15_000
const maxStreams = 2_000
const maxPerUser = 32
const maxUnread = 64 * 1024
/** A proxy must not collect the events before it passes them on. */
const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }
/** More requests than this are announced as `all`. */
const maxNamed = 50

export interface MainApiParts extends MainParts {
  readonly events: ChangeStreams
}

export const eventOperations = {
  getEvents: {
    summary: 'Server-sent events that say what changed for the caller, until the session ends',
    query: {
      sessions: '"true": also when a session of the caller begins or ends',
      sessionsOf: 'For administrators: also when a session of the user with this id begins or ends',
    },
    answers: {
      '200': {
        description: 'Events "requests", "approvals", "runs", "sessions" and "all"',
        type: 'text/event-stream',
      },
    },
    failures: { '403': 'sessionsOf, and the caller is not an administrator', '429': 'The caller has 32 streams open' },
    handle: (parts, exchange) => parts.events.answer(parts, exchange),
  },
} satisfies OperationTable<MainApiParts>

/**
 * Streams of server-sent events that say what changed, so that open pages read it again: `requests` with the ids of the
 * caller's requests, `approvals`, `runs` for administrators, `sessions` of the user whose list is open, and `all`. They
 * have no other content.
 */
export class ChangeStreams implements Closable {
  readonly #open = new Map<() => void, string>()

  async answer(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
    const { subject, request, application, session } = exchange
    const { host } = parts
    if (request.method === 'HEAD') return { status: 200, headers }
    const seesAllRuns = await isAdministrator(parts, subject)
    const watched = await watchedUser(parts, exchange, seesAllRuns)
    const ofUser = [...this.#open.values()].filter((identity) => identity === subject.identity).length
    if (ofUser >= maxPerUser || this.#open.size >= maxStreams) {
      throw new GatewayError('TOO_MANY_REQUESTS', `${this.#open.size} event streams are open`, { retryAfter: 30 })
    }
    const users = [userOf(parts, subject), approvalUser(subject)]
    const stream = new Readable({ read() {} })
    let isEnded = false
    const finish = (): void => {
      if (!isEnded) stream.push(null)
      isEnded = true
    }
    const write = (text: string): void => {
      if (isEnded) return
      // A client that does not read gets no more; its next stream begins with `all`.
      if (stream.readableLength > maxUnread) stream.destroy()
      else stream.push(text)
    }
    const send = (event: string, data: object = {}): void => write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    const changed: RunListener['changed'] = (changes, complete) => {
      const mine = changes.filter((change) => change.users.some((who) => users.some((user) => isUser(who, user))))
      const decides = changes.some((change) => change.approvers.some((who) => users.some((user) => isUser(who, user))))
      if (!complete || mine.length > maxNamed) return send('all')
      if (mine.length > 0) send('requests', { ids: mine.map(({ id }) => id) })
      if (decides) send('approvals')
      if (seesAllRuns && changes.length > 0) send('runs')
    }
    const stopListening = host.runChanges({ changed, ended: finish })
    const stopWatching = watched && host.sessionChanges(watched, { changed: () => send('sessions'), ended: finish })
    const isSignedIn = async (): Promise<boolean> =>
      session === undefined || (await host.sessions.minutesLeft(application, request)) !== undefined
    const heartbeat = setInterval(() => {
      isSignedIn().then((signedIn) => (signedIn ? write(': \n\n') : finish()), finish)
    }, heartbeatMillis)
    const end = setTimeout(finish, lifeMillis)
    this.#open.set(finish, subject.identity)
    stream.once('close', () => {
      clearInterval(heartbeat)
      clearTimeout(end)
      stopListening()
      stopWatching?.()
      this.#open.delete(finish)
    })
    request.signal.addEventListener('abort', () => stream.destroy(), { once: true })
    send('all')
    return { status: 200, headers, body: stream, endsWithFilter: true }
  }

  close(): void {
    for (const finish of this.#open.keys()) finish()
  }
}

/** Whose sessions the stream announces: only where the page shows them, so that no one else's are looked at. */
async function watchedUser(
  parts: MainParts,
  { request, subject }: Exchange,
  isAdmin: boolean,
): Promise<Identity | undefined> {
  const { sessions, sessionsOf } = readQuery(request.query, ['sessions', 'sessionsOf'])
  const [own] = sessions
  const [id] = sessionsOf
  if (own !== undefined && (own !== 'true' || id !== undefined)) {
    throw badRequest('sessions must be true, without sessionsOf.')
  }
  if (id === undefined) return own === undefined ? undefined : subject.identity
  if (!isAdmin) {
    throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" is not an administrator of the portal`)
  }
  return (await findPerson(parts, id)).identity
}
