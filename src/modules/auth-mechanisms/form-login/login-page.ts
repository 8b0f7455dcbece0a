import type { GatewayResponse } from '#sdk/filter/http.ts'
import { html, page, type Theme } from '#sdk/filter/page.ts'

export interface LoginPage {
  readonly title: string
  readonly userLabel: string
  readonly forgotPasswordURL: string | undefined
  readonly theme: Theme
}

export interface LoginPageState {
  /** Where the form goes. */
  readonly action: string
  readonly status: number
  readonly problem: string | undefined
}

/** Works without scripts, with the keyboard alone, with screen readers and with password managers. */
export function loginPage(
  { title, userLabel, forgotPasswordURL, theme }: LoginPage,
  state: LoginPageState,
): GatewayResponse {
  const { action, status, problem } = state
  const described = problem === undefined ? '' : html` aria-invalid="true" aria-describedby="problem"`
  return page(
    status,
    title,
    html`${problem === undefined ? '' : html`<p id="problem" role="alert">${problem}</p>`}
<form method="post" action="${action}">
<label for="user">${userLabel}</label>
<input id="user" name="user" type="text" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="256" required autofocus${described}>
<label for="pwd">Password</label>
<input id="pwd" name="pwd" type="password" autocomplete="current-password" maxlength="1024" required${described}>
<button type="submit">Sign in</button>
</form>
${forgotPasswordURL === undefined ? '' : html`<p><a href="${forgotPasswordURL}">Forgot your password?</a></p>`}`,
    { theme, narrow: true, formsLeadAnywhere: true },
  )
}
