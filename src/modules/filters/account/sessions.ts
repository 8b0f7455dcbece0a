import type { AccountSessions, EndedSessions } from '#contract/account.ts'
import { answer, noContent, notFound } from '#modules/filters/account/answer.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { GatewayResponse } from '#sdk/http.ts'

type Host = Pick<ModuleHost, 'sessions'>

export async function listSessions({ sessions }: Host, { subject, session }: Exchange): Promise<GatewayResponse> {
  const own = await sessions.ofUser(subject.identity)
  return answer({
    sessions: own.map(({ id, application, started, lastUsed, expires, address, agent }) => ({
      id,
      current: id === session?.id,
      application,
      started: started.toISOString(),
      lastUsed: lastUsed.toISOString(),
      expires: expires.toISOString(),
      address,
      agent,
    })),
  } satisfies AccountSessions)
}

export async function endSession({ sessions }: Host, { subject }: Exchange, id: string): Promise<GatewayResponse> {
  if (!(await sessions.end(subject.identity, id))) throw notFound('no such session of this person')
  return noContent
}

/** All but the one that asks. */
export async function endOtherSessions({ sessions }: Host, { subject, session }: Exchange): Promise<GatewayResponse> {
  const ended = await sessions.endAll(subject.identity, session === undefined ? {} : { except: session.id })
  return answer({ ended } satisfies EndedSessions)
}
