import * as z from 'zod'
import * as schemas from '#features/account/contract/account.ts'
import { type ApiAnswer, DescribedApi } from '#sdk/api/api-description.ts'

const password = z.string().min(1).max(1_024)
const name = z.string().max(200)
const enrolment = z.string().max(64)

export const changePasswordBody = z.strictObject({
  currentPassword: password,
  newPassword: password,
}) satisfies z.ZodType<schemas.ChangePassword>
export const renameFactorBody = z.strictObject({ name }) satisfies z.ZodType<schemas.RenameFactor>
export const confirmTotpBody = z.strictObject({ enrolment, code: z.string().max(16), name: name.optional() })
export const confirmPasskeyBody = z.strictObject({
  enrolment,
  response: z.looseObject({}).describe('RegistrationResponseJSON'),
  name: name.optional(),
})

const enrolled: ApiAnswer = { description: 'The factor was added', schema: 'EnrolledFactor' }
const freshLogin = { '403': 'Sign in again first: see step-up' }

/** Everything below `/account`. */
export const accountApi = new DescribedApi({
  title: 'Account API',
  version: '1.0.0',
  answers: {
    AccountView: schemas.accountView,
    AccountSessions: schemas.accountSessions,
    EndedSessions: schemas.endedSessions,
    AccountFactor: schemas.accountFactor,
    AccountFactors: schemas.accountFactors,
    TotpEnrolment: schemas.totpEnrolment,
    PasskeyEnrolment: schemas.passkeyEnrolment,
    EnrolledFactor: schemas.enrolledFactor,
    RecoveryCodes: schemas.recoveryCodes,
    AccountErrors: schemas.accountErrors,
  },
  bodies: {
    ChangePassword: changePasswordBody,
    RenameFactor: renameFactorBody,
    ConfirmTotp: confirmTotpBody,
    ConfirmPasskey: confirmPasskeyBody,
  },
  failure: { description: 'What is wrong', schema: 'AccountErrors' },
  operations: {
    getAccount: { route: 'GET', summary: 'The account and the session of the caller', answer: 'AccountView' },
    changePassword: {
      route: 'POST /password',
      summary: "Changes the caller's password and ends the other sessions",
      body: 'ChangePassword',
      answer: 'EndedSessions',
    },
    listSessions: { route: 'GET /sessions', summary: 'The sessions of the caller', answer: 'AccountSessions' },
    endOtherSessions: {
      route: 'DELETE /sessions',
      summary: 'Ends all sessions of the caller except the current one',
      answer: 'EndedSessions',
    },
    endSession: { route: 'DELETE /sessions/{id}', summary: 'Ends one session of the caller' },
    listFactors: { route: 'GET /factors', summary: 'The second factors of the caller', answer: 'AccountFactors' },
    beginTotp: {
      route: 'POST /factors/totp',
      summary: 'Begins to add an authenticator app',
      answer: 'TotpEnrolment',
      failures: freshLogin,
    },
    confirmTotp: {
      route: 'POST /factors/totp/confirm',
      summary: 'Adds the authenticator app',
      body: 'ConfirmTotp',
      answers: { '201': enrolled },
      failures: freshLogin,
    },
    beginPasskey: {
      route: 'POST /factors/passkey',
      summary: 'Begins to add a passkey',
      answer: 'PasskeyEnrolment',
      failures: freshLogin,
    },
    confirmPasskey: {
      route: 'POST /factors/passkey/confirm',
      summary: 'Adds the passkey',
      body: 'ConfirmPasskey',
      answers: { '201': enrolled },
      failures: freshLogin,
    },
    renameFactor: { route: 'PATCH /factors/{id}', summary: 'Renames a second factor', body: 'RenameFactor' },
    removeFactor: { route: 'DELETE /factors/{id}', summary: 'Removes a second factor', failures: freshLogin },
    renewRecoveryCodes: {
      route: 'POST /recovery-codes',
      summary: 'Replaces all recovery codes',
      answer: 'RecoveryCodes',
      failures: { ...freshLogin, '409': 'The caller has no second factor' },
    },
    stepUp: {
      route: 'GET /step-up',
      summary: 'Signs in again, by a browser',
      answers: { '303': { description: 'To the login, or back to the portal' } },
    },
  },
})
