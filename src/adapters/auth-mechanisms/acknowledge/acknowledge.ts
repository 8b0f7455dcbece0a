import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { readLoginForm } from '#sdk/login/login-form.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { translator } from '#sdk/page/configured-texts.ts'
import { html, page } from '#sdk/page/page.ts'
import { languageOf, textsFor } from '#sdk/page/page-texts.ts'

const parameters = {
  banner: text({ about: 'The text that users agree to; an empty line begins a paragraph.', required: true }),
  title: text({ about: 'The heading of the page; “Please confirm”, in the language of the user, when absent.' }),
  loginJSP: text({ about: 'Accepted and not used: the page is part of Gatehouse. `check` says so.' }),
}

const maxBody = 4096

/** Shows a text, and lets users continue who agree to it. It identifies no one. */
export default defineAuthMechanism({
  className: 'auth.Acknowledge',
  aliases: ['com.tremolosecurity.proxy.auth.AcknowledgeAuthMech'],
  parameters,
  interactive: true,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.loginJSP !== undefined) {
      issues.warning(params.pathOf('loginJSP'), 'not used: the page is part of Gatehouse')
    }
    if (/<[a-z/!]/i.test(given.banner)) {
      issues.warning(params.pathOf('banner'), '"banner" is shown as text: its HTML tags are visible to users')
    }
    return given
  },
  create: ({ banner, title }, { texts, log }) => ({
    async begin({ login }) {
      if (login === undefined) return { kind: 'rejected', reason: 'a banner is for browsers', noCredential: true }
      return { kind: 'challenge', response: seeOther(login.address) }
    },
    async proceed(attempt) {
      const { request, login, subject } = attempt
      const form = await readLoginForm(attempt, maxBody)
      if (form?.get('agree') === 'true') {
        log.info('a user agreed to the banner', {
          requestId: request.id,
          user: subject?.dn.toString() ?? 'not known yet',
        })
        return { kind: 'passed' }
      }
      const t = textsFor(request)
      const translate = translator(texts, languageOf(request))
      const paragraphs = translate(banner).split(/\n\s*\n/)
      const response = page(
        200,
        title === undefined ? t('acknowledge.title') : translate(title),
        html`${paragraphs.map((paragraph) => html`<p>${paragraph}</p>\n`)}
<form method="post" action="${login.address}">
<button type="submit" name="agree" value="true">${t('acknowledge.agree')}</button>
</form>`,
        { request, narrow: true, formsLeadAnywhere: true },
      )
      return { kind: 'challenge', response }
    },
  }),
})
