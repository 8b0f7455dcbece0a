import { DirectoryLogin, maxUser, parseLookup } from '#adapters/auth-mechanisms/shared/directory-login.ts'
import {
  type AuthAttempt,
  type AuthMechanism,
  type AuthOutcome,
  defineAuthMechanism,
  type LoginAttempt,
} from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { pageTheme, pageThemeParameters } from '#sdk/forms/page-theme.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import type { Theme } from '#sdk/http/page-look.ts'
import { readLoginForm } from '#sdk/login/login-form.ts'
import { flag, parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { type ConfiguredTexts, translator } from '#sdk/page/configured-texts.ts'
import { html, type Markup, page } from '#sdk/page/page.ts'
import { durationText, languageOf, textsFor } from '#sdk/page/page-texts.ts'

const parameters = {
  uidAttr: text({
    about:
      'The attribute that holds the login; with `uidIsFilter` the filter, such as `(|(uid=${user})(mail=${user}))`.',
    fallback: 'uid',
  }),
  uidIsFilter: flag({
    about:
      '`"true"`: `uidAttr` is an RFC 4515 filter in which `${user}` is what was typed. It only ever becomes a value of the filter.',
  }),
  title: text({ about: 'The heading of the login page; “Sign in”, in the language of the user, when absent.' }),
  userLabel: text({ about: 'The label of the login field; “User name”, in the language of the user, when absent.' }),
  forgotPasswordURL: parsed('address', parseAddress, {
    about:
      'Where the link “Forgot your password?” leads, such as the path of [filters.Passwords](../filters/filters.Passwords.md): a path of this host, or an http or https address. No link when absent.',
  }),
  registerURL: parsed('address', parseAddress, {
    about:
      'Where the link “Create an account” leads, such as the path of a [filters.Portal](../filters/filters.Portal.md) with the registration form: a path of this host, or an http or https address. No link when absent.',
  }),
  ...pageThemeParameters,
  FORMLOGIN_JSP: text({ about: 'Accepted and not used: the login page is part of Gatehouse. `check` says so.' }),
}

/** A form for login and password, which the virtual directory checks. */
export default defineAuthMechanism({
  className: 'auth.FormLogin',
  aliases: ['com.tremolosecurity.proxy.auth.FormLoginAuthMech'],
  parameters,
  interactive: true,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.FORMLOGIN_JSP !== undefined) {
      issues.warning(params.pathOf('FORMLOGIN_JSP'), 'not used: the login page is part of Gatehouse')
    }
    const { title, userLabel, forgotPasswordURL, registerURL } = given
    return {
      lookup: parseLookup(given, params, issues),
      uidAttr: given.uidIsFilter ? 'uid' : given.uidAttr,
      page: { title, userLabel, forgotPasswordURL, registerURL, theme: pageTheme(given) },
    }
  },
  create: ({ lookup, uidAttr, page }, host) => {
    if (lookup === undefined) throw new Error('the lookup settings are invalid')
    return new LoginForm({ ...page, texts: host.texts }, new DirectoryLogin(lookup, uidAttr, host))
  },
})

function parseAddress(written: string): string {
  const isPath = /^\/(?![/\\])/.test(written)
  if (!isPath && !(URL.canParse(written) && /^https?:$/.test(new URL(written).protocol))) {
    throw new Error('must be a path of this host, or an http or https address')
  }
  return written
}

const maxBody = 16 * 1024

class LoginForm implements AuthMechanism {
  readonly #page: LoginPage
  readonly #people: DirectoryLogin

  constructor(page: LoginPage, people: DirectoryLogin) {
    this.#page = page
    this.#people = people
  }

  async begin({ login }: AuthAttempt): Promise<AuthOutcome> {
    if (login === undefined) return { kind: 'rejected', reason: 'a login form is for browsers', noCredential: true }
    return { kind: 'challenge', response: seeOther(login.address) }
  }

  async proceed(attempt: LoginAttempt): Promise<AuthOutcome> {
    const { guard, root, request } = attempt
    const form = await readLoginForm(attempt, maxBody)
    if (form === undefined) return this.#ask(attempt, { status: 200 })
    const user = (form.get('user') ?? '').trim()
    const given = { user, password: form.get('pwd') ?? '', root, local: request.isLocal === true }
    const outcome = await this.#people.logIn(given, guard)
    switch (outcome.kind) {
      case 'authenticated':
        return outcome
      case 'refused':
        return this.#ask(attempt, { status: 401, problem: textsFor(request)('login.wrong'), user })
      case 'locked': {
        const { retryAfterSeconds: retryAfter } = outcome
        const problem = textsFor(request)('login.tooMany', { time: durationText(retryAfter, request) })
        return this.#ask(attempt, { status: 429, problem, user, retryAfter })
      }
    }
  }

  #ask({ login, request }: LoginAttempt, state: LoginPageState): AuthOutcome {
    const response = loginPage(this.#page, login.address, state, request)
    if (state.retryAfter === undefined) return { kind: 'challenge', response }
    const headers = { ...response.headers, 'retry-after': String(state.retryAfter) }
    return { kind: 'challenge', response: { ...response, headers } }
  }
}

interface LoginPage {
  readonly title: string | undefined
  readonly userLabel: string | undefined
  readonly forgotPasswordURL: string | undefined
  readonly registerURL: string | undefined
  readonly theme: Theme | undefined
  readonly texts: ConfiguredTexts | undefined
}

interface LoginPageState {
  readonly status: number
  readonly problem?: string
  /** What was typed before. The password is never filled in again. */
  readonly user?: string
  readonly retryAfter?: number
}

/** Works without scripts, with the keyboard alone, with screen readers and with password managers. */
function loginPage(
  { title, userLabel, forgotPasswordURL, registerURL, theme, texts }: LoginPage,
  action: string,
  { status, problem, user = '' }: LoginPageState,
  request: GatewayRequest,
): GatewayResponse {
  const t = textsFor(request)
  const translate = translator(texts, languageOf(request))
  const described = problem === undefined ? '' : html` aria-invalid="true" aria-describedby="problem"`
  const known = user !== '' && user.length <= maxUser
  const focused = html` autofocus`
  return page(
    status,
    title === undefined ? t('login.title') : translate(title),
    html`${problem === undefined ? '' : html`<p id="problem" role="alert">${problem}</p>`}
<form method="post" action="${action}">
<label for="user">${userLabel === undefined ? t('login.user') : translate(userLabel)}</label>
<input id="user" name="user" type="text" value="${known ? user : ''}" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="256" required${known ? '' : focused}${described}>
<label for="pwd">${t('login.password')}</label>
<input id="pwd" name="pwd" type="password" autocomplete="current-password" maxlength="1024" required${known ? focused : ''}${described}>
<button type="submit">${t('login.submit')}</button>
</form>
${links([
  [forgotPasswordURL, t('login.forgot')],
  [registerURL, t('login.register')],
])}`,
    { request, theme, narrow: true, formsLeadAnywhere: true },
  )
}

/** The links whose address is configured. */
function links(given: readonly (readonly [address: string | undefined, text: string])[]): Markup | '' {
  const items = given.flatMap(([address, text]) =>
    address === undefined ? [] : [html`<li><a href="${address}">${text}</a></li>\n`],
  )
  return items.length === 0 ? '' : html`<ul class="links">\n${items}</ul>`
}
