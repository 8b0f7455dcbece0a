import type { AccountErrors, AccountFactorKind } from '#features/account/contract/account.ts'
import { secondFactorKinds } from '#features/account/second-factors/second-factor.ts'
import { checkPasswordParameters, passwordParameters } from '#features/passwords/rules/password-parameters.ts'
import type { Issues } from '#kernel/issues.ts'
import { jsonBody } from '#kernel/json.ts'
import { jsonHeaders } from '#sdk/api/json-answer.ts'
import type { ErrorFormat } from '#sdk/http/error-format.ts'
import { choice, flag, list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

export const parameters = {
  stepUpChain: text({
    about: 'The chain by which users who have a second factor sign in again before a change; it must require one.',
    required: true,
    reference: 'chain',
  }),
  enrolChain: text({
    about: 'The chain for users who have no second factor yet, such as one with a password only.',
    requirement: 'no, `stepUpChain`',
    reference: 'chain',
  }),
  stepUpMinutes: wholeNumber({ about: 'Maximum age of that login.', fallback: 10, min: 1, max: 1440 }),
  homeURL: text({ about: 'The path of this host that `step-up` leads to.', fallback: '/' }),
  offers: list({ about: 'The second factors that can be enrolled: `totp` and `passkey`.', requirement: 'no, both' }),
  issuer: text({ about: 'The name of this service in authenticator apps.', fallback: 'Gatehouse' }),
  rpId: text({
    about: 'The domain that passkeys are for; the same as in [auth.Passkey](../auth-mechanisms/auth.Passkey.md).',
    requirement: 'no, the host',
  }),
  rpName: text({ about: 'The name of this service in browsers.', fallback: 'Gatehouse' }),
  userVerification: choice(['required', 'preferred', 'discouraged'], {
    about: 'Whether the device checks a PIN, finger or face when a passkey is made.',
    fallback: 'preferred',
  }),
  displayNameAttribute: text({ about: 'The attribute with the display name.', fallback: 'displayName' }),
  changePassword: flag({
    about: '`"true"`: users can change their password. The parameters that follow are about it.',
  }),
  confirmByMail: flag({ about: '`"true"`: users get a mail after their password was changed.' }),
  ...passwordParameters,
} satisfies ParameterTable

export interface AccountSettings extends Omit<ParsedParameters<typeof parameters>, 'offers' | 'enrolChain'> {
  readonly enrolChain: string
  readonly offers: readonly AccountFactorKind[]
}

export function parseAccount(params: Params, issues: Issues, context: ParseContext): AccountSettings {
  const given = readParameters(parameters, params, issues, context)
  if (!/^\/(?![/\\])/.test(given.homeURL))
    issues.error(params.pathOf('homeURL'), '"homeURL": must be a path of this host')
  for (const [i, kind] of given.offers.entries()) {
    if (!secondFactorKinds.some((known) => known === kind)) {
      issues.error(
        params.pathOf('offers', i),
        `"offers": must be one of ${secondFactorKinds.join(', ')}, not "${kind}"`,
      )
    }
  }
  checkPasswordParameters(given, given.changePassword && given.confirmByMail, params, issues, context)
  return {
    ...given,
    enrolChain: given.enrolChain ?? given.stepUpChain,
    offers: secondFactorKinds.filter((kind) => given.offers.length === 0 || given.offers.includes(kind)),
  }
}

/** Marks the errors after which the portal asks the user to sign in again. */
export const stepUpKeyword = 'step-up'

export const accountErrors: ErrorFormat = ({ publicText, problems, code, keyword }, requestId) => ({
  headers: jsonHeaders,
  body: jsonBody({
    errors: [publicText, ...problems.map(({ pointer, detail }) => `${pointer || '/'} ${detail}`)],
    code,
    requestId,
    ...(keyword === stepUpKeyword ? { stepUp: true } : {}),
  } satisfies AccountErrors),
})
