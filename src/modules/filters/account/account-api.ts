import type { AccountView } from '#contract/account.ts'
import { GatewayError } from '#kernel/errors.ts'
import { answer, notFound } from '#modules/filters/account/answer.ts'
import {
  beginPasskey,
  beginTotp,
  confirmPasskey,
  confirmTotp,
  type FactorParts,
  listFactors,
  removeFactor,
  renameFactor,
  renewCodes,
} from '#modules/filters/account/factors.ts'
import { type OwnPassword, openOwnPassword } from '#modules/filters/account/own-password.ts'
import { endOtherSessions, endSession, listSessions } from '#modules/filters/account/sessions.ts'
import type { AccountSettings } from '#modules/filters/account/settings.ts'
import { stepUp } from '#modules/filters/account/step-up.ts'
import { openTotp } from '#protocols/otp/totp.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { Filter } from '#sdk/filter.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { GatewayResponse } from '#sdk/http.ts'

type Handler = (exchange: Exchange, id: string) => Promise<GatewayResponse>

export async function createAccount(settings: AccountSettings, host: ModuleHost): Promise<Filter> {
  const parts: FactorParts = { settings, host, totp: await openTotp() }
  const passwords = settings.changePassword ? openOwnPassword(settings, host) : undefined
  /** By path and method; `*` is the id of something. */
  const routes: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
    '': { GET: async (exchange) => showAccount(exchange, settings, passwords) },
    ...(passwords === undefined ? {} : { '/password': { POST: (exchange: Exchange) => passwords.change(exchange) } }),
    '/sessions': {
      GET: (exchange) => listSessions(host, exchange),
      DELETE: (exchange) => endOtherSessions(host, exchange),
    },
    '/sessions/*': { DELETE: (exchange, id) => endSession(host, exchange, id) },
    '/factors': { GET: (exchange) => listFactors(parts, exchange) },
    '/factors/totp': { POST: (exchange) => beginTotp(parts, exchange) },
    '/factors/totp/confirm': { POST: (exchange) => confirmTotp(parts, exchange) },
    '/factors/passkey': { POST: (exchange) => beginPasskey(parts, exchange) },
    '/factors/passkey/confirm': { POST: (exchange) => confirmPasskey(parts, exchange) },
    '/factors/*': {
      PATCH: (exchange, id) => renameFactor(parts, exchange, id),
      DELETE: (exchange, id) => removeFactor(parts, exchange, id),
    },
    '/recovery-codes': { POST: (exchange) => renewCodes(parts, exchange) },
    '/step-up': { GET: (exchange) => stepUp(parts, exchange) },
  }
  return {
    close: () => passwords?.close(),
    async handle(exchange) {
      const { method } = exchange.request
      const { methods, id } = find(routes, pathOf(exchange))
      const wanted = method === 'HEAD' ? 'GET' : method
      const handler = Object.hasOwn(methods, wanted) ? methods[wanted] : undefined
      if (handler === undefined) {
        throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: Object.keys(methods).join(', ') } })
      }
      const { body, ...head } = await handler(exchange, id)
      return method === 'HEAD' || body === undefined ? head : { ...head, body }
    },
  }
}

/** What follows `/account`, which may be the end of the mount or stand behind it. */
function pathOf({ mount, pathInfo }: Exchange): string {
  const path = pathInfo.replace(/\/$/, '')
  if (mount.endsWith('/account')) return path
  if (path === '/account' || path.startsWith('/account/')) return path.slice('/account'.length)
  throw notFound(`nothing at "${pathInfo}"`)
}

function find<M>(routes: Readonly<Record<string, M>>, path: string): { methods: M; id: string } {
  const exact = Object.hasOwn(routes, path) ? routes[path] : undefined
  if (exact !== undefined) return { methods: exact, id: '' }
  const [, collection, id] = /^(\/\w+)\/([\w-]{1,64})$/.exec(path) ?? []
  const key = `${collection}/*`
  const methods = Object.hasOwn(routes, key) ? routes[key] : undefined
  if (methods === undefined || id === undefined) throw notFound(`nothing at "${path}"`)
  return { methods, id }
}

function showAccount(
  { subject, session }: Exchange,
  { displayNameAttribute }: AccountSettings,
  passwords: OwnPassword | undefined,
): GatewayResponse {
  const { uid, attributes } = subject
  const own = session && {
    id: session.id,
    chain: session.chain,
    level: session.level,
    started: session.started.toISOString(),
    expires: session.expires.toISOString(),
  }
  const displayName = attributes.first(displayNameAttribute) ?? uid
  const password = passwords?.rulesFor(subject)
  return answer({
    login: uid,
    displayName,
    ...(own === undefined ? {} : { session: own }),
    ...(password === undefined ? {} : { password }),
  } satisfies AccountView)
}
