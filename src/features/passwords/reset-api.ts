import * as z from 'zod'
import { type ApiAnswer, DescribedApi } from '#sdk/api/api-description.ts'
import { mainErrors } from '#sdk/contract/errors.ts'

export const maxUser = 256
export const maxToken = 200
export const maxPassword = 1_024

export const requestSchema = z.strictObject({
  user: z.string().min(1).max(maxUser).describe('What the user would type, such as the login or the mail address'),
})
export const setSchema = z.strictObject({
  token: z.string().min(1).max(maxToken).describe('The part after # of the link in the mail'),
  newPassword: z.string().min(1).max(maxPassword),
})

const page: ApiAnswer = { description: 'A page for people', type: 'text/html' }

/** Everything at and below the mount. The pages also send forms, which are answered with pages. */
export const passwordResetApi = new DescribedApi({
  title: 'Password reset API',
  version: '1.0.0',
  answers: { Errors: mainErrors },
  bodies: { ResetRequest: requestSchema, ResetPassword: setSchema },
  failure: { description: 'What is wrong, such as 429 for too many requests', schema: 'Errors' },
  operations: {
    showRequestPage: {
      route: 'GET',
      summary: 'The page where users request a link',
      answers: { '200': page },
    },
    requestReset: {
      route: 'POST',
      summary: 'Mails a link to set a new password to the user, if there is such a user',
      body: 'ResetRequest',
      answers: { '202': { description: 'The same for every name' } },
    },
    showSetPage: {
      route: 'GET /set',
      summary: 'The page that the link leads to',
      answers: { '200': page },
    },
    setPassword: {
      route: 'POST /set',
      summary: 'Sets a new password with the token of a link',
      body: 'ResetPassword',
      failures: {
        '404': 'The link was used or replaced, or has expired',
        '409': 'The link is being used, or the account belongs to another user',
        '422': 'The password breaks a rule; the link can be used again',
      },
    },
  },
})
