import * as z from 'zod'
import type {
  AccountSessions,
  AccountView,
  ChangePassword,
  EndedSessions,
  PasswordRuleView,
} from '#contract/account.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
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
  stepUp,
} from '#modules/filters/account/factors.ts'
import { answer, emptyAnswer, notFound } from '#modules/shared/http/json-answer.ts'
import { readJsonBody } from '#modules/shared/http/json-body.ts'
import { passwordWriter } from '#modules/shared/passwords/password-parameters.ts'
import { openTotp } from '#protocols/otp/totp.ts'
import { openPasswordRules } from '#protocols/passwords/password-rules.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { AccountSettings } from './settings.ts'

type Handler = (exchange: Exchange, id: string) => Promise<GatewayResponse>

export async function createAccount(settings: AccountSettings, host: FilterHost): Promise<Filter> {
  const parts: FactorParts = { settings, host, totp: await openTotp() }
  const passwords = settings.changePassword ? openOwnPassword(settings, host) : undefined
  /** By path and method; `*` is an id. */
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

/** The path after `/account`, which is the end of the mount or follows it. */
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

async function listSessions({ sessions }: FilterHost, { subject, session }: Exchange): Promise<GatewayResponse> {
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

async function endSession({ sessions }: FilterHost, { subject }: Exchange, id: string): Promise<GatewayResponse> {
  if (!(await sessions.end(subject.identity, id))) throw notFound('no such session of this person')
  return emptyAnswer(204)
}

/** Ends all sessions except the current one. */
async function endOtherSessions({ sessions }: FilterHost, { subject, session }: Exchange): Promise<GatewayResponse> {
  const ended = await sessions.endAll(subject.identity, session === undefined ? {} : { except: session.id })
  return answer({ ended } satisfies EndedSessions)
}

const maxBody = 16 * 1024
const password = z.string().min(1).max(1_024)
const changeSchema = z.strictObject({
  currentPassword: password,
  newPassword: password,
}) satisfies z.ZodType<ChangePassword>

/** The caller's own password. */
interface OwnPassword {
  /** Undefined if the caller has no password that can be changed here. */
  rulesFor(subject: Subject): PasswordRuleView | undefined
  change(exchange: Exchange): Promise<GatewayResponse>
  close(): void
}

function openOwnPassword(settings: AccountSettings, { passwords, log }: FilterHost): OwnPassword {
  const { passwordMinChars: minChars, passwordMaxChars: maxChars, breachListURL, breachListFailure } = settings
  const acceptUnchecked = breachListFailure === 'accept'
  const rules = openPasswordRules({ minChars, maxChars, breachListURL, acceptUnchecked }, log)
  const check = (written: string, values: Iterable<string>) =>
    rules.check({ password: written, repeated: written, values }, true)
  const writer = passwordWriter(settings, check, settings.confirmByMail)
  return {
    rulesFor: (subject) => (passwords.canChange(subject, writer) ? { minChars, maxChars } : undefined),
    change: async ({ request, subject, session, application }) => {
      const { currentPassword: current, newPassword } = await readJsonBody(request, changeSchema, maxBody)
      const change = { subject, session: session?.id, application, current, password: newPassword, writer, request }
      const ended = await passwords.change(change)
      return answer({ ended } satisfies EndedSessions)
    },
    close: () => rules.close(),
  }
}
