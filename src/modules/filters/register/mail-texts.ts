import { parseTemplate, type Template } from '#kernel/template.ts'

export const verificationText = `Somebody, probably you, registered with this mail address.

Open this page and confirm it to go on:
$link$

If it was not you, do nothing: without the confirmation nothing happens.
`

export const invitationText = `You are invited to register.

Open this page to accept the invitation:
$link$
`

/** To whoever has the mail address, where a registration was not possible and the form is not to say so. */
export const unavailableText = `Somebody, probably you, tried to register with this mail address.

That is not possible with what was entered, since there is an account with the same details already. If it is yours, log in:
$link$

If it was not you, you need not do anything.
`

/** Throws an Error where it has places for anything but `$link$` and `$title$`, or none for the link. */
export function compileMailTemplate(text: string): Template {
  const template = parseTemplate(text, { keys: true, attributes: false })
  const unknown = template.keys.find((key) => key !== 'link' && key !== 'title')
  if (unknown !== undefined) throw new Error(`has a place for "$${unknown}$"; there are $link$ and $title$`)
  if (!template.keys.includes('link')) throw new Error('needs a place for "$link$"')
  return template
}

export const renderMail = (template: Template, link: string, title: string): string =>
  template.render({ key: (name) => (name === 'link' ? link : title) })
