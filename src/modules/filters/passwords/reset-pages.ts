import type { GatewayResponse } from '#sdk/filter/http.ts'
import { html, type Markup, page, type Theme } from '#sdk/filter/page.ts'

export interface PageSettings {
  readonly title: string
  readonly userLabel: string
  readonly homeURL: string
  readonly linkMinutes: number
  readonly minChars: number
  readonly maxChars: number
  readonly theme: Theme
}

const alert = (problem: string | undefined): Markup | '' =>
  problem === undefined ? '' : html`<p id="problem" role="alert">${problem}</p>`

/** The pages of a password reset. They work without scripts, with the keyboard alone, and with password managers. */
export class ResetPages {
  readonly #settings: PageSettings

  constructor(settings: PageSettings) {
    this.#settings = settings
  }

  request(mount: string, status = 200, problem?: string): GatewayResponse {
    const { title, userLabel, homeURL, linkMinutes } = this.#settings
    const described = problem === undefined ? '' : html` aria-invalid="true" aria-describedby="problem"`
    return this.#page(
      status,
      title,
      html`${alert(problem)}
<p>We send a link to the mail address of your account. It works for ${minutes(linkMinutes)}.</p>
<form method="post" action="${mount || '/'}">
<label for="user">${userLabel}</label>
<input id="user" name="user" type="text" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="256" required autofocus${described}>
<button type="submit">Send link</button>
</form>
<p><a href="${homeURL}">Back to sign-in</a></p>`,
    )
  }

  /** The same for every name, whether or not the user exists. */
  sent(mount: string): GatewayResponse {
    const { homeURL, linkMinutes } = this.#settings
    return this.#page(
      202,
      'Check your inbox',
      html`<p>If your account has a mail address, a link is on its way to it. The link works once, for ${minutes(linkMinutes)}.</p>
<p>No mail? Look in your spam folder, or <a href="${mount || '/'}">request another link</a>.</p>
<p><a href="${homeURL}">Back to sign-in</a></p>`,
    )
  }

  /** `token` is filled in again after a password that was not accepted. */
  set(mount: string, state: { readonly status?: number; readonly problem?: string; readonly token?: string } = {}) {
    const { minChars, maxChars } = this.#settings
    const { status = 200, problem, token = '' } = state
    const described = problem === undefined ? 'rules' : 'problem rules'
    const invalid = problem === undefined ? '' : html` aria-invalid="true"`
    return this.#page(
      status,
      'Set a new password',
      html`${alert(problem)}
<form method="post" action="${mount}/set">
<div data-token${token === '' ? '' : html` hidden`}>
<label for="token">Code from the mail</label>
<input id="token" name="token" type="text" autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="200" required value="${token}">
</div>
<label for="password">New password</label>
<p id="rules">At least ${String(minChars)} characters.</p>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="${String(minChars)}" maxlength="${String(maxChars)}" required aria-describedby="${described}"${invalid}>
<label for="repeated">Repeat the new password</label>
<input id="repeated" name="repeated" type="password" autocomplete="new-password" minlength="${String(minChars)}" maxlength="${String(maxChars)}" required${invalid}>
<button type="submit">Set password</button>
</form>`,
      `${mount}/set.js`,
    )
  }

  changed(): GatewayResponse {
    return this.#page(
      200,
      'Password changed',
      html`<p>Your new password is set, and you are signed out everywhere.</p>
<p><a href="${this.#settings.homeURL}">Sign in</a></p>`,
    )
  }

  over(mount: string): GatewayResponse {
    return this.#page(
      410,
      'This link no longer works',
      html`<p>It was used already, has expired, or a newer link was sent. Your password wasn’t changed.</p>
<p><a href="${mount || '/'}">Request a new link</a></p>`,
    )
  }

  notice(status: number, title: string, text: string): GatewayResponse {
    return this.#page(status, title, html`<p>${text}</p>`)
  }

  /** Browsers send the address of these pages in no Referer header, not even to this site. */
  #page(status: number, title: string, content: Markup, script?: string): GatewayResponse {
    const { theme } = this.#settings
    const made = page(status, title, content, { theme, narrow: true, ...(script === undefined ? {} : { script }) })
    return { ...made, headers: { ...made.headers, 'referrer-policy': 'no-referrer' } }
  }
}

const minutes = (count: number): string => (count === 1 ? 'a minute' : `${count} minutes`)
