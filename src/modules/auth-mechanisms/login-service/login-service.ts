import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import {
  type AuthAttempt,
  type AuthMechanism,
  type AuthOutcome,
  defineAuthMechanism,
  type LoginAttempt,
} from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/filter/http.ts'
import { html, page } from '#sdk/filter/page.ts'
import { readForm } from '#sdk/filter/read-form.ts'
import { list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

const parameters = {
  chains: list({
    about:
      'The options for users, in order: `label=chain`; may repeat. Name chains: an address, as in OpenUnison, is an error.',
    required: true,
  }),
  title: text({ about: 'The heading of the page.', fallback: 'How do you want to sign in?' }),
  cookieName: text({
    about: 'The cookie that remembers the choice, if the user wants that.',
    fallback: 'login-choice',
  }),
  cookieDays: wholeNumber({ about: 'For how many days; 0: the choice is not remembered.', fallback: 0, max: 400 }),
  serviceUrl: text({ about: 'Accepted and not used: the page is part of Gatehouse. `check` says so.' }),
}

interface Choice {
  readonly label: string
  readonly chain: string
}

interface Config {
  readonly choices: readonly Choice[]
  readonly title: string
  readonly cookieName: string
  readonly cookieDays: number
}

const maxBody = 4096
const cookieToken = /^[\w!#$%&'*+.^`|~-]+$/

/** Lets users choose how they log in; the chosen chain's mechanisms then run in this place. */
export default defineAuthMechanism({
  className: 'auth.LoginService',
  aliases: ['com.tremolosecurity.proxy.auth.LoginService'],
  parameters,
  interactive: true,
  parse: (params, issues, context): Config => {
    const given = readParameters(parameters, params, issues, context)
    const { title, cookieName, cookieDays } = given
    if (given.serviceUrl !== undefined) {
      issues.warning(params.pathOf('serviceUrl'), 'not used: the page is part of Gatehouse')
    }
    if (!cookieToken.test(cookieName)) issues.error(params.pathOf('cookieName'), 'cannot be the name of a cookie')
    return { choices: readChoices(given.chains, params, issues, context), title, cookieName, cookieDays }
  },
  includes: ({ choices }) => choices.map(({ chain }) => chain),
  create: (config) => new LoginService(config),
})

function readChoices(written: readonly string[], params: Params, issues: Issues, context: ParseContext): Choice[] {
  return written.flatMap((pair, i) => {
    const equals = pair.indexOf('=')
    const [label, chain] = [pair.slice(0, Math.max(0, equals)).trim(), pair.slice(equals + 1).trim()]
    const at = params.pathOf('chains', i)
    if (label === '' || chain === '') {
      issues.error(at, `"chains": must be label=chain, not "${pair}"`)
      return []
    }
    if (/^(?:\/|https?:)/.test(chain)) {
      issues.error(at, `"chains": name the chain that protects ${chain}, not its address`)
      return []
    }
    context.refer('chain', chain, at)
    return [{ label, chain }]
  })
}

class LoginService implements AuthMechanism {
  readonly #config: Config

  constructor(config: Config) {
    this.#config = config
  }

  async begin({ request, login }: AuthAttempt): Promise<AuthOutcome> {
    const { choices } = this.#config
    const [first, second] = choices
    if (first !== undefined && second === undefined) return { kind: 'include', chain: first.chain }
    if (login === undefined) return { kind: 'rejected', reason: 'a choice is for browsers', noCredential: true }
    const remembered = this.#remembered(request)
    if (remembered !== undefined) return { kind: 'include', chain: remembered.chain }
    return { kind: 'challenge', response: seeOther(login.address) }
  }

  async proceed({ request, login, pathInfo }: LoginAttempt): Promise<AuthOutcome> {
    if (pathInfo !== '') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
    const { choices, title, cookieDays } = this.#config
    if (request.method !== 'POST') {
      const labels = choices.map(({ label }) => label)
      return {
        kind: 'challenge',
        response: choicePage({ title, labels, action: login.address, remembers: cookieDays > 0 }),
      }
    }
    const form = await readForm(request, maxBody)
    const chosen = choices.find(({ label }) => label === form.get('chain'))
    if (chosen === undefined) throw new GatewayError('BAD_REQUEST', 'a choice that is not offered')
    const remembers = cookieDays > 0 && form.get('remember') === 'true'
    return { kind: 'include', chain: chosen.chain, ...(remembers ? { cookie: this.#cookie(chosen, request) } : {}) }
  }

  /** A choice is a convenience, not a proof: the cookie's value must be one of the offered chains. */
  #remembered(request: GatewayRequest): Choice | undefined {
    const { cookieDays, cookieName, choices } = this.#config
    if (cookieDays === 0) return undefined
    const pairs = (header(request, 'cookie') ?? '').split(';', 100).map((pair) => pair.trim())
    return choices.find(({ chain }) => pairs.includes(`${cookieName}=${encodeURIComponent(chain)}`))
  }

  #cookie({ chain }: Choice, { origin }: GatewayRequest): string {
    const { cookieName, cookieDays } = this.#config
    const secure = origin.startsWith('https:') ? '; Secure' : ''
    const maxAge = cookieDays * 24 * 3600
    return `${cookieName}=${encodeURIComponent(chain)}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAge}${secure}`
  }
}

interface ChoicePage {
  readonly title: string
  readonly labels: readonly string[]
  readonly action: string
  readonly remembers: boolean
}

/** One button for each way to log in. */
function choicePage({ title, labels, action, remembers }: ChoicePage): GatewayResponse {
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
