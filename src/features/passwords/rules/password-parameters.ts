import type { PasswordWriter } from '#features/passwords/service/password-writer.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import type { PasswordProblem } from '#protocols/passwords/password-rules.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import { choice, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import type { ParameterTable, ParsedParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { defaultNotifier, referNotifier } from '#sdk/notifier/notifier.ts'
import { textsFor, textsIn } from '#sdk/page/page-texts.ts'
import { passwordProblemText } from './password-problem-text.ts'

/** The parameters of every filter by which users set their own passwords. */
export const passwordParameters = {
  passwordTarget: text({
    about:
      'The target that new passwords are written to, such as the [targets.Ldap](../targets/targets.Ldap.md) behind a [directory.Ldap](../directory-inserts/directory.Ldap.md). When absent, the directory insert that the user is in, which must be a [directory.Database](../directory-inserts/directory.Database.md).',
    reference: 'target',
  }),
  loginAttribute: text({
    about: "The attribute with a user's login, at `passwordTarget` as well.",
    fallback: 'uid',
  }),
  mailAttribute: text({ about: "The attribute with a user's mail address.", fallback: 'mail' }),
  passwordMinChars: wholeNumber({ about: 'Minimum length of a password.', fallback: 8, min: 8, max: 128 }),
  passwordMaxChars: wholeNumber({ about: 'Maximum length of a password.', fallback: 128, min: 8, max: 1_000 }),
  breachListURL: parsed('web address', readWebAddress, {
    about:
      'A service of known passwords that is asked by the first five digits of their SHA-1, as `https://api.pwnedpasswords.com/range` is.',
  }),
  breachListFailure: choice(['refuse', 'accept'], {
    about: 'What happens to a password if the service does not answer.',
    fallback: 'refuse',
  }),
  notifier: text({ about: 'The [Notifier](../kinds/Notifier.md) that sends the mails; the default one when absent.' }),
  confirmationSubject: text({
    about:
      'The subject of the mail that confirms a change; “Your password was changed”, in the language of the user, when absent.',
  }),
  confirmationText: text({
    about:
      'The text of that mail; when absent, that the password was changed and what to do if it was someone else, in the language of the user.',
  }),
} satisfies ParameterTable

type PasswordParameters = ParsedParameters<typeof passwordParameters>

/** Reports what is wrong with the parameters together. `mails`: users get mails. */
export function checkPasswordParameters(
  given: PasswordParameters,
  mails: boolean,
  params: Params,
  issues: Issues,
  context: ParseContext,
): void {
  if (given.passwordMinChars > given.passwordMaxChars) {
    issues.error(params.pathOf('passwordMinChars'), '"passwordMinChars" is more than "passwordMaxChars"')
  }
  if (mails) referNotifier(given.notifier ?? defaultNotifier, params.pathOf('notifier'), context)
}

/** The problems of a password; empty for an accepted one. */
type CheckPassword = (password: string, values: Iterable<string>) => Promise<readonly PasswordProblem[]>

/** `confirms`: users get a mail after a change. */
export function passwordWriter(given: PasswordParameters, check: CheckPassword, confirms: boolean): PasswordWriter {
  const { passwordTarget, loginAttribute, mailAttribute } = given
  return {
    target: passwordTarget,
    loginAttribute,
    mailAttribute,
    confirmation: (language) => {
      if (!confirms) return undefined
      const texts = textsIn(language)
      const {
        confirmationSubject = texts('mail.passwordChanged'),
        confirmationText = texts('mail.passwordChangedText'),
      } = given
      return mailText(given, { subject: confirmationSubject, text: confirmationText })
    },
    check: async (password, values, reader) => {
      const [problem] = await check(password, values)
      if (problem === undefined) return
      const texts = textsFor(reader)
      throw new GatewayError('WEAK_PASSWORD', `a password is not accepted: ${problem.kind}`, {
        publicText: texts('password.sentence', { problem: passwordProblemText(problem, texts) }),
      })
    },
  }
}

export const mailText = (
  { notifier }: Pick<PasswordParameters, 'notifier'>,
  mail: Pick<MailText, 'subject' | 'text'>,
): MailText => (notifier === undefined ? mail : { ...mail, notifier })

/** Throws an Error for anything but an http or https URL without login and fragment. */
export function readWebAddress(written: string): string {
  const url = URL.canParse(written) ? new URL(written) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.hash !== '') {
    throw new Error('must be an http or https address without login and fragment')
  }
  return url.href
}
