import {
  checkPasswordParameters,
  mailText,
  passwordParameters,
  readWebAddress,
} from '#features/passwords/rules/password-parameters.ts'
import type { ResetLinks } from '#features/passwords/service/reset-links.ts'
import { Dn } from '#identity/dn.ts'
import { type FilterTemplate, parseFilterTemplate } from '#identity/filter/filter-template.ts'
import type { Issues } from '#kernel/issues.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import { pageTheme, pageThemeParameters } from '#sdk/forms/page-theme.ts'
import { parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { durationIn, textsIn } from '#sdk/page/page-texts.ts'

export const parameters = {
  publicURL: parsed('web address', readWebAddress, {
    about:
      'The address of this URL as users reach it, such as `https://portal.example.com/password`; mails lead there.',
    required: true,
  }),
  lookup: parsed('filter', parseLookup, {
    about:
      'How a user is found: an RFC 4515 filter in which `${user}` is what was typed. It only ever becomes a value of the filter.',
    requirement: 'no, `(|(uid=${user})(mail=${user}))`',
  }),
  root: parsed('distinguished name', (value) => Dn.parse(value), {
    about: 'Where users are searched.',
    requirement: 'no, the root of the directory',
  }),
  linkMinutes: wholeNumber({ about: 'How long a link can be used.', fallback: 30, min: 1, max: 1440 }),
  linksPerHour: wholeNumber({
    about: 'Maximum number of links for one user per hour. Further requests are answered the same, and send no mail.',
    fallback: 3,
    min: 1,
    max: 100,
  }),
  requestsPerMinute: wholeNumber({
    about: 'Maximum number of link requests from one address per minute; 0 for no limit.',
    fallback: 10,
    min: 0,
    max: 1_000_000,
  }),
  title: text({
    about:
      'The heading of the page where a link is requested; “Forgot your password?”, in the language of the user, when absent.',
  }),
  userLabel: text({
    about: 'The label of the login field; “User name or mail address”, in the language of the user, when absent.',
  }),
  homeURL: text({ about: 'The path of this host where users sign in afterwards.', fallback: '/' }),
  linkSubject: text({
    about: 'The subject of the mail with the link; “Set a new password”, in the language of the user, when absent.',
  }),
  linkText: parsed('mail template', compileText, {
    about:
      'The text of that mail, with `$link$`, `$code$` and `$minutes$`; the code is for browsers without scripts. When absent, a text with all three in the language of the user.',
  }),
  ...pageThemeParameters,
  ...passwordParameters,
} satisfies ParameterTable

export type ResetSettings = ReturnType<typeof parseReset>

export function parseReset(params: Params, issues: Issues, context: ParseContext) {
  const given = readParameters(parameters, params, issues, context)
  if (!/^\/(?![/\\])/.test(given.homeURL)) {
    issues.error(params.pathOf('homeURL'), '"homeURL": must be a path of this host')
  }
  checkPasswordParameters(given, true, params, issues, context)
  const publicURL = (given.publicURL ?? '').replace(/\/$/, '')
  return {
    given,
    publicURL,
    links: resetLinks(given, publicURL),
    lookup: given.lookup ?? parseLookup('(|(uid=${user})(mail=${user}))'),
    theme: pageTheme(given),
  }
}

function resetLinks(given: ParsedParameters<typeof parameters>, publicURL: string): ResetLinks {
  const { root, linkMinutes, linksPerHour, passwordTarget, loginAttribute, mailAttribute } = given
  return {
    root,
    writer: { target: passwordTarget, loginAttribute, mailAttribute },
    validMillis: linkMinutes * 60_000,
    perHour: linksPerHour,
    write: (secret, language) => {
      const texts = textsIn(language)
      const { linkText, linkSubject = texts('mail.reset') } = given
      // Browsers don't send the part after # to servers, so it appears in no log.
      const places = { link: `${publicURL}/set#${secret}`, code: secret, minutes: String(linkMinutes) }
      const text =
        linkText?.render({ key: (name) => places[name as keyof typeof places] }) ??
        texts('mail.resetText', { ...places, time: durationIn(linkMinutes * 60, language) })
      return mailText(given, { subject: linkSubject, text })
    },
  }
}

/** The typed login only ever becomes a value of the filter. */
function parseLookup(written: string): FilterTemplate {
  const template = parseFilterTemplate(written)
  const [unknown] = [...template.placeholders].filter((name) => name !== 'user')
  if (unknown !== undefined) throw new Error(`has no place for "\${${unknown}}", only for \${user}`)
  if (template.placeholders.size === 0)
    throw new Error('must contain ${user}: otherwise it finds the same users for every name')
  return template
}

function compileText(written: string): Template {
  const template = parseTemplate(written, { keys: true, attributes: false })
  const unknown = template.keys.find((key) => !['link', 'code', 'minutes'].includes(key))
  if (unknown !== undefined) throw new Error(`has a place for "$${unknown}$"; there are $link$, $code$ and $minutes$`)
  if (!template.keys.includes('link')) throw new Error('needs a place for "$link$"')
  return template
}
