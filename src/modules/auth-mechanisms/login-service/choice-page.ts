import type { GatewayResponse } from '#sdk/filter/http.ts'
import { html, page } from '#sdk/filter/page.ts'

export interface ChoicePage {
  readonly title: string
  readonly labels: readonly string[]
  readonly action: string
  readonly remembers: boolean
}

/** One button for each way to log in. */
export function choicePage({ title, labels, action, remembers }: ChoicePage): GatewayResponse {
  const remember = html`<p><label class="check"><input type="checkbox" name="remember" value="true"> Remember my choice on this computer</label></p>`
  return page(
    200,
    title,
    html`<form method="post" action="${action}">
${remembers ? remember : ''}
${labels.map((label) => html`<button type="submit" name="chain" value="${label}">${label}</button>\n`)}
</form>`,
    { narrow: true, formsLeadAnywhere: true },
  )
}
