import * as z from 'zod'
import * as schemas from '#features/account/contract/account.ts'
import * as routes from '#features/account/contract/routes.ts'
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
    getAccount: {
      route: routes.getAccount,
      summary: 'The account and the session of the caller',
      answer: 'AccountView',
    },
    changePassword: {
      route: routes.changePassword,
      summary: "Changes the caller's password and ends the other sessions",
      body: 'ChangePassword',
      answer: 'EndedSessions',
    },
    listSessions: { route: routes.listSessions, summary: 'The sessions of the caller', answer: 'AccountSessions' },
    endOtherSessions: {
      route: routes.endOtherSessions,
      summary: 'Ends all sessions of the caller except the current one',
      answer: 'EndedSessions',
    },
    endSession: { route: routes.endSession, summary: 'Ends one session of the caller' },
    listFactors: { route: routes.listFactors, summary: 'The second factors of the caller', answer: 'AccountFactors' },
    beginTotp: {
      route: routes.beginTotp,
      summary: 'Begins to add an authenticator app',
      answer: 'TotpEnrolment',
      failures: freshLogin,
    },
    confirmTotp: {
      route: routes.confirmTotp,
      summary: 'Adds the authenticator app',
      body: 'ConfirmTotp',
      answers: { '201': enrolled },
      failures: freshLogin,
    },
    beginPasskey: {
      route: routes.beginPasskey,
      summary: 'Begins to add a passkey',
      answer: 'PasskeyEnrolment',
      failures: freshLogin,
    },
    confirmPasskey: {
      route: routes.confirmPasskey,
      summary: 'Adds the passkey',
      body: 'ConfirmPasskey',
      answers: { '201': enrolled },
      failures: freshLogin,
    },
    renameFactor: { route: routes.renameFactor, summary: 'Renames a second factor', body: 'RenameFactor' },
    removeFactor: { route: routes.removeFactor, summary: 'Removes a second factor', failures: freshLogin },
    renewRecoveryCodes: {
      route: routes.renewRecoveryCodes,
      summary: 'Replaces all recovery codes',
      answer: 'RecoveryCodes',
      failures: { ...freshLogin, '409': 'The caller has no second factor' },
    },
    stepUp: {
      route: routes.stepUp,
      summary: 'Signs in again, by a browser',
      answers: { '303': { description: 'To the login, or back to the portal' } },
    },
  },
})
