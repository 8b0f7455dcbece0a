import * as z from 'zod'
import type { ChangePassword, EndedSessions, PasswordRuleView } from '#contract/account.ts'
import type { Subject } from '#identity/subject.ts'
import { answer } from '#modules/filters/account/answer.ts'
import type { AccountSettings } from '#modules/filters/account/settings.ts'
import { openPasswordRules } from '#protocols/passwords/password-rules.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { readJsonBody } from '#sdk/json-body.ts'
import { passwordWriter } from '#sdk/password-parameters.ts'

const maxBody = 16 * 1024
const password = z.string().min(1).max(1_024)
const changeSchema = z.strictObject({
  currentPassword: password,
  newPassword: password,
}) satisfies z.ZodType<ChangePassword>

/** The caller's own password. */
export interface OwnPassword {
  /** Undefined where the caller has no password that can be changed here. */
  rulesFor(subject: Subject): PasswordRuleView | undefined
  change(exchange: Exchange): Promise<GatewayResponse>
  close(): void
}

export function openOwnPassword(settings: AccountSettings, { passwords, log }: ModuleHost): OwnPassword {
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
