import { registerApiVersion } from '#features/registration/contract/paths.ts'
import * as schemas from '#features/registration/contract/register.ts'
import { type ApiAnswer, DescribedApi } from '#sdk/api/api-description.ts'
import { formAttributeView, listItem } from '#sdk/contract/forms.ts'
import { invitationRequest, registerRequest } from './register-settings.ts'

const page: ApiAnswer = { description: 'A page for people', type: 'text/html' }

/** Everything below `/register`. */
export const registerApi = new DescribedApi({
  title: 'Registration API',
  version: registerApiVersion,
  answers: {
    Config: schemas.registerConfig,
    Attribute: formAttributeView,
    AttributeValueListItem: listItem,
    SubmittedResponse: schemas.submittedResponse,
    ErrorResponse: schemas.errorResponse,
    Challenge: schemas.registerChallenge,
    InvitationOffer: schemas.invitationOffer,
    Invitation: schemas.invitationView,
    InvitationList: schemas.invitationList,
  },
  bodies: { RegisterRequest: registerRequest, InvitationRequest: invitationRequest },
  failure: { description: 'What is wrong, such as 429 for too many requests', schema: 'ErrorResponse' },
  operations: {
    getConfig: { route: 'GET /config', summary: 'The configuration of the registration form', answer: 'Config' },
    getValues: {
      route: 'GET /values',
      summary: 'The allowed values of list attributes',
      query: { name: 'Attribute whose values are wanted; all lists when absent', search: 'Value to search for' },
      answer: 'AttributeValueListItem[]',
      failures: { '400': 'There is no such list' },
    },
    submit: {
      route: 'POST /submit',
      summary: 'Submits a registration, which starts a workflow',
      body: 'RegisterRequest',
      answer: 'SubmittedResponse',
      failures: {
        '400': 'The body is not valid',
        '413': 'The body is too large',
        '415': 'The body is not JSON',
        '500': 'Failed validation, with everything that is wrong',
      },
    },
    getChallenge: {
      route: 'GET /challenge',
      summary: 'A task for the proof of work, where the form requires one',
      answer: 'Challenge',
    },
    showVerification: {
      route: 'GET /verify',
      summary: 'The page that a verification mail leads to',
      query: { token: 'Of the mail' },
      answers: { '200': page, '410': page },
    },
    verify: {
      route: 'POST /verify',
      summary: 'Confirms a mail address: the form of that page',
      answers: { '200': page, '403': page, '409': page, '410': page },
    },
    getInvitation: {
      route: 'GET /invitation',
      summary: 'What an invitation says',
      query: { token: 'Of the invitation' },
      answer: 'InvitationOffer',
    },
    listInvitations: {
      route: 'GET /invitations',
      summary: 'The invitations, for users who may invite',
      query: { after: 'The `next` of the page before' },
      answer: 'InvitationList',
    },
    invite: {
      route: 'POST /invitations',
      summary: 'Invites someone by mail',
      body: 'InvitationRequest',
      answers: { '201': { description: 'The invitation', schema: 'Invitation' } },
    },
    revokeInvitation: { route: 'DELETE /invitations/{id}', summary: 'Revokes an invitation', answer: 'Invitation' },
    resendInvitation: { route: 'POST /invitations/{id}/resend', summary: 'Sends the mail again', answer: 'Invitation' },
  },
})
