import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import { readLoginForm } from '#sdk/login/login-form.ts'
import { list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { type Translate, translator } from '#sdk/page/configured-texts.ts'
import { html, page } from '#sdk/page/page.ts'
import { languageOf, textsFor } from '#sdk/page/page-texts.ts'

const parameters = {
  chains: list({
    about:
      'The options for users, in order: `label=chain`; may repeat. Instead of a chain, the path of a URL whose `authChain` is used, as in OpenUnison.',
    required: true,
  }),
  title: text({
    about: 'The heading of the page; “How do you want to sign in?”, in the language of the user, when absent.',
  }),
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

const maxBody = 4096
const cookieToken = /^[\w!#$%&'*+.^`|~-]+$/

/** Lets users choose how they log in; the chosen chain's mechanisms then run in this place. */
export default defineAuthMechanism({
  className: 'auth.LoginService',
  aliases: ['com.tremolosecurity.proxy.auth.LoginService'],
  parameters,
  interactive: true,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.serviceUrl !== undefined) {
      issues.warning(params.pathOf('serviceUrl'), 'not used: the page is part of Gatehouse')
    }
    if (!cookieToken.test(given.cookieName)) issues.error(params.pathOf('cookieName'), 'cannot be the name of a cookie')
    return { ...given, choices: readChoices(given.chains, params, issues, context) }
  },
  includes: ({ choices }) => choices.map(({ chain }) => chain),
  create: ({ choices, title, cookieName, cookieDays }, { texts }) => {
    /** A choice is a convenience, not a proof: the cookie's value must be one of the offered chains. */
    const remembered = (request: GatewayRequest): Choice | undefined => {
      if (cookieDays === 0) return undefined
      const pairs = (header(request, 'cookie') ?? '').split(';', 100).map((pair) => pair.trim())
      return choices.find(({ chain }) => pairs.includes(`${cookieName}=${encodeURIComponent(chain)}`))
    }
    const cookieOf = ({ chain }: Choice, { origin }: GatewayRequest): string => {
      const secure = origin.startsWith('https:') ? '; Secure' : ''
      const maxAge = cookieDays * 24 * 3600
      return `${cookieName}=${encodeURIComponent(chain)}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAge}${secure}`
    }
    return {
      async begin({ request, login }) {
        const [first, second] = choices
        if (first !== undefined && second === undefined) return { kind: 'include', chain: first.chain }
        if (login === undefined) return { kind: 'rejected', reason: 'a choice is for browsers', noCredential: true }
        const earlier = remembered(request)
        if (earlier !== undefined) return { kind: 'include', chain: earlier.chain }
        return { kind: 'challenge', response: seeOther(login.address) }
      },
      async proceed(attempt) {
        const { request, login } = attempt
        const form = await readLoginForm(attempt, maxBody)
        if (form === undefined) {
          const labels = choices.map(({ label }) => label)
          const translate = translator(texts, languageOf(request))
          const parts = { title, labels, translate, action: login.address, remembers: cookieDays > 0 }
          const response = choicePage(parts, request)
          return { kind: 'challenge', response }
        }
        const chosen = choices.find(({ label }) => label === form.get('chain'))
        if (chosen === undefined) throw new GatewayError('BAD_REQUEST', 'a choice that is not offered')
        const remembers = cookieDays > 0 && form.get('remember') === 'true'
        return { kind: 'include', chain: chosen.chain, ...(remembers ? { cookie: cookieOf(chosen, request) } : {}) }
      },
    }
  },
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
    const name = chain.startsWith('/') ? context.chainAt?.(chain) : chain
    if (name === undefined || /^https?:/.test(name)) {
      issues.error(at, `"chains": no URL of an application serves ${chain} with a chain: name the chain instead`)
      return []
    }
    context.refer('chain', name, at)
    return [{ label, chain: name }]
  })
}

interface ChoicePage {
  readonly title: string | undefined
  readonly labels: readonly string[]
  /** The address that the form posts to. */
  readonly action: string
  readonly remembers: boolean
  readonly translate: Translate
}

/** One button for each way to log in. */
function choicePage(
  { title, labels, action, remembers, translate }: ChoicePage,
  request: GatewayRequest,
): GatewayResponse {
  const t = textsFor(request)
  const remember = html`<p><label class="check"><input type="checkbox" name="remember" value="true"> ${t('choice.remember')}</label></p>`
  return page(
    200,
    title === undefined ? t('choice.title') : translate(title),
    html`<form method="post" action="${action}">
${remembers ? remember : ''}
${labels.map((label) => html`<button type="submit" name="chain" value="${label}">${translate(label)}</button>\n`)}
</form>`,
    { request, narrow: true, formsLeadAnywhere: true },
  )
}
