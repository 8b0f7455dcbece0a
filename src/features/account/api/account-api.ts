import type {
  AccountSessions,
  AccountView,
  EndedSessions,
  PasswordRuleView,
} from '#features/account/contract/account.ts'
import type { AccountHost } from '#features/account/host.ts'
import { passwordWriter } from '#features/passwords/rules/password-parameters.ts'
import type { Subject } from '#identity/subject.ts'
import { openTotp } from '#protocols/otp/totp.ts'
import { openPasswordRules } from '#protocols/passwords/password-rules.ts'
import { answer, emptyAnswer, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody } from '#sdk/api/json-body.ts'
import { pathBelow } from '#sdk/api/routes.ts'
import { servedBy } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { accountApi, changePasswordBody } from './api-description.ts'
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
} from './factors.ts'
import type { AccountSettings } from './settings.ts'

export async function createAccount(settings: AccountSettings, host: AccountHost): Promise<Filter> {
  const passwords = settings.changePassword ? openOwnPassword(settings, host) : undefined
  const parts: AccountParts = { settings, host, totp: await openTotp(), passwords }
  return {
    close: () => passwords?.close(),
    async handle(exchange) {
      const path = pathBelow('/account', exchange).replace(/\/$/, '')
      if (!/^[\w/-]{0,100}$/.test(path)) throw notFound('no such path')
      return await served.answer(parts, exchange, path)
    },
  }
}

interface AccountParts extends FactorParts {
  readonly host: AccountHost
  readonly passwords: OwnPassword | undefined
}

const served = servedBy<AccountParts, keyof typeof accountApi.description.operations>(accountApi, {
  getAccount: showAccount,
  changePassword,
  listSessions,
  endOtherSessions,
  endSession,
  listFactors,
  beginTotp,
  confirmTotp,
  beginPasskey,
  confirmPasskey,
  renameFactor,
  removeFactor,
  renewRecoveryCodes: renewCodes,
  stepUp,
})

async function changePassword({ passwords }: AccountParts, exchange: Exchange): Promise<GatewayResponse> {
  if (passwords === undefined) throw notFound('no one changes a password here')
  return await passwords.change(exchange)
}

async function showAccount(
  { settings: { displayNameAttribute }, passwords }: AccountParts,
  { subject, session }: Exchange,
): Promise<GatewayResponse> {
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

async function listSessions(
  { host: { sessions } }: AccountParts,
  { subject, session }: Exchange,
): Promise<GatewayResponse> {
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

async function endSession(
  { host: { sessions } }: AccountParts,
  { subject }: Exchange,
  id = '',
): Promise<GatewayResponse> {
  if (!(await sessions.end(subject.identity, id))) throw notFound('no such session of this person')
  return emptyAnswer(204)
}

/** Ends all sessions except the current one. */
async function endOtherSessions(
  { host: { sessions } }: AccountParts,
  { subject, session }: Exchange,
): Promise<GatewayResponse> {
  const ended = await sessions.endAll(subject.identity, session === undefined ? {} : { except: session.id })
  return answer({ ended } satisfies EndedSessions)
}

const maxBody = 16 * 1024

/** The caller's own password. */
interface OwnPassword {
  /** Undefined if the caller has no password that can be changed here. */
  rulesFor(subject: Subject): PasswordRuleView | undefined
  change(exchange: Exchange): Promise<GatewayResponse>
  close(): void
}

function openOwnPassword(settings: AccountSettings, { passwords, log }: AccountHost): OwnPassword {
  const { passwordMinChars: minChars, passwordMaxChars: maxChars, breachListURL, breachListFailure } = settings
  const acceptUnchecked = breachListFailure === 'accept'
  const rules = openPasswordRules({ minChars, maxChars, breachListURL, acceptUnchecked }, log)
  const check = (written: string, values: Iterable<string>) =>
    rules.check({ password: written, repeated: written, values }, true)
  const writer = passwordWriter(settings, check, settings.confirmByMail)
  return {
    rulesFor: (subject) => (passwords.canChange(subject, writer) ? { minChars, maxChars } : undefined),
    change: async ({ request, subject, session, application }) => {
      const { currentPassword: current, newPassword } = await readJsonBody(request, changePasswordBody, maxBody)
      const change = { subject, session: session?.id, application, current, password: newPassword, writer, request }
      const ended = await passwords.change(change)
      return answer({ ended } satisfies EndedSessions)
    },
    close: () => rules.close(),
  }
}
