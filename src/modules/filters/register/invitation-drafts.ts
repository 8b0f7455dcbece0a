import type { FieldProblem } from '#kernel/errors.ts'
import type { RegisterSettings } from '#modules/filters/register/register-settings.ts'
import { checkValue } from '#modules/shared/forms/form-values.ts'
import { isMailAddress } from '#sdk/notifier/mail.ts'

/** What is wrong with an invitation: it may set fields of the form only, and to what the form takes. */
export function draftProblems(
  { attributes, given }: RegisterSettings,
  email: string,
  values: Readonly<Record<string, string>>,
): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (!isMailAddress(email)) problems.push({ pointer: '/email', detail: 'is not a mail address' })
  for (const [name, value] of Object.entries(values)) {
    const pointer = `/attributes/${name.slice(0, 80)}`
    const attribute = attributes.find((one) => one.name === name)
    if (attribute === undefined) problems.push({ pointer, detail: 'is not a field of the form' })
    else if (name === given.emailAttribute) problems.push({ pointer, detail: 'is the mail address itself' })
    else
      for (const detail of checkValue({ ...attribute, required: true }, value))
        problems.push({ pointer, detail: `: ${detail}` })
  }
  return problems
}
