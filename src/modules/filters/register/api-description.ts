import { registerApiVersion } from '#contract/register.ts'
import { formAttributeView, listItem } from '#contract/schemas/main.ts'
import * as schemas from '#contract/schemas/register.ts'
import { type ApiAnswer, DescribedApi } from '#modules/shared/http/api-description.ts'
import { invitationRequest, registerRequest } from './register-settings.ts'

const page: ApiAnswer = { description: 'A page for people', type: 'text/html' }
const refused = (description: string): ApiAnswer => ({ description, schema: 'ErrorResponse' })

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
  failure: refused('What is wrong, such as 429 for too many requests'),
  operations: [
    {
      path: '/config',
      method: 'get',
      id: 'getConfig',
      summary: 'The configuration of the registration form',
      answers: { '200': { description: 'The form', schema: 'Config' } },
    },
    {
      path: '/values',
      method: 'get',
      id: 'getValues',
      summary: 'The allowed values of list attributes',
      query: { name: 'Attribute whose values are wanted; all lists when absent', search: 'Value to search for' },
      answers: {
        '200': { description: 'The values', schema: 'AttributeValueListItem', many: true },
        '400': refused('There is no such list'),
      },
    },
    {
      path: '/submit',
      method: 'post',
      id: 'submit',
      summary: 'Submits a registration, which starts a workflow',
      body: 'RegisterRequest',
      answers: {
        '200': { description: 'The registration was accepted', schema: 'SubmittedResponse' },
        '400': refused('The body is not valid'),
        '413': refused('The body is too large'),
        '415': refused('The body is not JSON'),
        '500': refused('Failed validation, with everything that is wrong'),
      },
    },
    {
      path: '/challenge',
      method: 'get',
      id: 'getChallenge',
      summary: 'A task for the proof of work, where the form requires one',
      answers: { '200': { description: 'The task', schema: 'Challenge' } },
    },
    {
      path: '/verify',
      method: 'get',
      id: 'showVerification',
      summary: 'The page that a verification mail leads to',
      query: { token: 'Of the mail' },
      answers: { '200': page, '410': page },
    },
    {
      path: '/verify',
      method: 'post',
      id: 'verify',
      summary: 'Confirms a mail address: the form of that page',
      answers: { '200': page, '403': page, '409': page, '410': page },
    },
    {
      path: '/invitation',
      method: 'get',
      id: 'getInvitation',
      summary: 'What an invitation says',
      query: { token: 'Of the invitation' },
      answers: { '200': { description: 'The invitation', schema: 'InvitationOffer' } },
    },
    {
      path: '/invitations',
      method: 'get',
      id: 'listInvitations',
      summary: 'The invitations, for users who may invite',
      query: { after: 'The `next` of the page before' },
      answers: { '200': { description: 'A page of them', schema: 'InvitationList' } },
    },
    {
      path: '/invitations',
      method: 'post',
      id: 'invite',
      summary: 'Invites someone by mail',
      body: 'InvitationRequest',
      answers: { '201': { description: 'The invitation', schema: 'Invitation' } },
    },
    {
      path: '/invitations/{id}',
      method: 'delete',
      id: 'revokeInvitation',
      summary: 'Revokes an invitation',
      answers: { '200': { description: 'The invitation as it is now', schema: 'Invitation' } },
    },
    {
      path: '/invitations/{id}/resend',
      method: 'post',
      id: 'resendInvitation',
      summary: 'Sends the mail again',
      answers: { '200': { description: 'The invitation as it is now', schema: 'Invitation' } },
    },
  ],
})
