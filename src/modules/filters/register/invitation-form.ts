import { draftProblems } from '#modules/filters/register/invitation-drafts.ts'
import { Mails } from '#modules/filters/register/mails.ts'
import type { RegisterSettings } from '#modules/filters/register/register-settings.ts'
import type { InvitationForm } from '#sdk/filter.ts'

/** Under which name the registrations and invitations of a form are kept. */
export const formName = (application: string, { given }: Pick<RegisterSettings, 'given'>): string =>
  `${application} ${given.workflowName}`

/** How others than the API invite to the form; undefined where invitations lead nowhere. */
export function invitationForm(settings: RegisterSettings): InvitationForm | undefined {
  if (settings.given.invitationURL === undefined) return undefined
  return {
    name: (application) => formName(application, settings),
    problems: (email, attributes) =>
      draftProblems(settings, email, attributes).map(({ pointer, detail }) => `${pointer} ${detail}`),
    mail: new Mails(settings).invitation(),
  }
}
