import type { RegisterSettings } from '#modules/filters/register/register-settings.ts'
import type { Registrar } from '#modules/filters/register/registrar.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/filter/http.ts'
import { html, notice, page, type Theme } from '#sdk/filter/page.ts'
import { readForm } from '#sdk/filter/read-form.ts'

const maxBody = 8 * 1024
const maxToken = 200

/** The page that a mail leads to. Opening it confirms nothing, since programs open links too; its button does. */
export class VerificationPage {
  readonly #registrar: Registrar
  readonly #settings: RegisterSettings
  readonly #theme: Theme

  constructor(registrar: Registrar, settings: RegisterSettings) {
    this.#registrar = registrar
    this.#settings = settings
    this.#theme = { main: settings.given.themePrimaryMain, dark: settings.given.themePrimaryDark }
  }

  async show({ request }: Exchange): Promise<GatewayResponse> {
    const token = request.query.get('token') ?? ''
    if (token.length > maxToken || !(await this.#registrar.isPending(token))) return this.#over()
    const content = html`<p>Confirm your e-mail address to continue with your registration.</p>
<form method="post" action="${request.path}">
<input type="hidden" name="token" value="${token}">
<button type="submit">Confirm</button>
</form>`
    return page(200, this.#settings.given['frontPage.title'], content, { theme: this.#theme, narrow: true })
  }

  async confirm({ request }: Exchange): Promise<GatewayResponse> {
    if (!isOwnPage(request))
      return this.#notice(403, 'Not allowed', 'Open the link of the mail, and confirm on the page that it shows.')
    const token = (await readForm(request, maxBody)).get('token') ?? ''
    const outcome = token.length > maxToken ? undefined : await this.#registrar.confirm(token, request.id)
    if (outcome === undefined) return this.#over()
    if (outcome.kind === 'started') return this.#notice(200, 'Thank you', this.#settings.given.submittedText)
    const text = 'These details are already in use. Please register again with different details.'
    return this.#notice(409, 'No longer available', text)
  }

  #over(): GatewayResponse {
    const text = 'This link was used already, or is too old. Please register again if you have no account yet.'
    return this.#notice(410, 'No longer valid', text)
  }

  #notice(status: number, title: string, text: string): GatewayResponse {
    return notice(status, title, text, { theme: this.#theme, narrow: true })
  }
}

/** No other site may press the button. What is no browser says nothing of where it comes from. */
function isOwnPage(request: GatewayRequest): boolean {
  const site = header(request, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin'
  const origin = header(request, 'origin')
  return origin === undefined || origin === request.origin
}
