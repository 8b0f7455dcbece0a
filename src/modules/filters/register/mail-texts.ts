import { parseTemplate, type Template } from '#kernel/template.ts'

export const verificationText = `Someone, probably you, registered with this e-mail address.

Open this page to confirm the address:
$link$

If it wasn't you, you can ignore this mail.
`

export const invitationText = `You are invited to register.

Open this page to accept the invitation:
$link$
`

/** To whoever has the mail address, where a registration was not possible and the form is not to say so. */
export const unavailableText = `Someone, probably you, tried to register with this e-mail address.

There is already an account with the same details. If it is yours, sign in:
$link$

If it wasn't you, you can ignore this mail.
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
