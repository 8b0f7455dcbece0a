import { registerPaths } from '#contract/register.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { viewFormAttribute } from '#modules/shared/forms/form-attribute.ts'
import type { ApiPlace } from '#modules/shared/http/api-description.ts'
import { answer, jsonHeaders } from '#modules/shared/http/json-answer.ts'
import { readJsonBody } from '#modules/shared/http/json-body.ts'
import { openPasswordRules, type PasswordRules } from '#protocols/passwords/password-rules.ts'
import type { ErrorFormat } from '#sdk/filter/error-format.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/filter/http.ts'
import { html, notice, page, type Theme } from '#sdk/filter/page.ts'
import { readForm } from '#sdk/filter/read-form.ts'
import type { RegistrationEvent } from '#sdk/filter/registrations.ts'
import type { ValueSource } from '#sdk/mapper/mapper.ts'
import { registerApi } from './api-description.ts'
import { type HumanCheck, noHumanCheck, openProofOfWork, openProviderCheck, type ProofOfWork } from './human-check.ts'
import { formName, InvitationsApi, invitationForm } from './invitations-api.ts'
import { Limits } from './limits.ts'
import { Mails } from './mails.ts'
import {
  type ReadRequest,
  type RegisterSettings,
  readRegisterSettings,
  readRequest,
  registerParameters,
} from './register-settings.ts'
import { Registrar, type SubmitOutcome } from './registrar.ts'
import { actionOf, configView, ValueLists } from './registration-form.ts'

const maxBodyBytes = 256 * 1024

/** `errors` as for a rejected registration; the problems of the body replace the general text. */
export const registerErrors: ErrorFormat = ({ publicText, problems, code }, requestId) => ({
  headers: jsonHeaders,
  body: JSON.stringify({
    errors:
      problems.length === 0
        ? [publicText]
        : problems.map(({ pointer, detail }) => `${pointer || 'The body'} ${detail}`),
    code,
    requestId,
  }),
})

/** A registration form: its configuration, the values of its lists, and its submissions. */
export default defineFilter<RegisterSettings>({
  className: 'filters.Register',
  aliases: ['com.tremolosecurity.scalejs.register.ws.ScaleRegister'],
  parameters: registerParameters,
  answers: true,
  errors: registerErrors,
  takesForms: true,
  parse: readRegisterSettings,
  summarize: ({ given, humanCheck }) => [
    { label: 'workflow', value: given.workflowName },
    { label: 'human check', value: humanCheck },
  ],
  flow: ({ given, places }) => ({
    produces: places,
    workflows: [given.workflowName],
    reads: [],
    target: undefined,
    given: [given.uidAttributeName],
  }),
  invitations: invitationForm,
  create: openRegister,
})

async function openRegister(settings: RegisterSettings, host: FilterHost): Promise<Filter> {
  const sources = new Map<string, ValueSource>()
  const closing: (() => unknown)[] = []
  const close = async (): Promise<void> => {
    for (const one of closing.toReversed()) await one()
  }
  try {
    for (const [name, source] of settings.sources) {
      const opened = await source.create(host)
      closing.push(() => opened.close?.())
      sources.set(name, opened)
    }
  } catch (error) {
    await close()
    throw error
  }
  const humanCheck = openHumanCheck(settings, host)
  const passwords = openPasswords(settings, host)
  closing.push(
    () => humanCheck.close(),
    () => passwords.close(),
  )
  return new RegisterFilter({ settings, host, sources, humanCheck, passwords, close })
}

function openHumanCheck({ given, humanCheck: kind }: RegisterSettings, host: FilterHost): HumanCheck | ProofOfWork {
  if (kind === 'none') return noHumanCheck
  if (kind === 'proof-of-work') return openProofOfWork(given.proofOfWorkBits, host)
  const { rcSecret = '', rcVerifyURL, rcHostname, rcAction, rcMinScore = 0.5 } = given
  const provider = {
    kind,
    secret: rcSecret,
    url: rcVerifyURL,
    hostnames: rcHostname,
    action: actionOf(kind, rcAction),
    minScore: rcMinScore,
  }
  return openProviderCheck(provider, host.log, host.clock)
}

const openPasswords = ({ given }: RegisterSettings, host: FilterHost): PasswordRules =>
  openPasswordRules(
    {
      minChars: given.passwordMinChars,
      maxChars: given.passwordMaxChars,
      breachListURL: given.breachListURL,
      acceptUnchecked: given.breachListFailure === 'accept',
    },
    host.log,
  )

interface RegisterParts {
  readonly settings: RegisterSettings
  readonly host: FilterHost
  readonly sources: ReadonlyMap<string, ValueSource>
  readonly humanCheck: HumanCheck | ProofOfWork
  readonly passwords: PasswordRules
  readonly close: () => Promise<void>
}

class RegisterFilter implements Filter {
  readonly close: () => Promise<void>
  readonly #settings: RegisterSettings
  readonly #count: (event: RegistrationEvent) => void
  readonly #humanCheck: HumanCheck | ProofOfWork
  readonly #lists: ValueLists
  readonly #limits: Limits
  readonly #registrar: Registrar
  readonly #verification: VerificationPage
  readonly #invitations: InvitationsApi
  readonly #body: ReturnType<typeof readRequest>

  constructor({ settings, host, sources, humanCheck, passwords, close }: RegisterParts) {
    const { attributes, given } = settings
    const form = formName(host.name, settings)
    const mails = new Mails(settings)
    this.close = close
    this.#count = (event) => host.registrations.counted(form, event)
    this.#settings = settings
    this.#humanCheck = humanCheck
    this.#lists = new ValueLists({ attributes, sources, minSearchChars: given.minSearchChars, log: host.log })
    this.#limits = new Limits(given, host.clock)
    this.#registrar = new Registrar({
      settings,
      form,
      sources,
      humanCheck,
      passwords,
      mails,
      limits: this.#limits,
      host,
    })
    this.#verification = new VerificationPage(this.#registrar, settings)
    this.#invitations = new InvitationsApi({ settings, form, mails, host })
    this.#body = readRequest(given.honeypotField)
  }

  async handle(exchange: Exchange): Promise<GatewayResponse> {
    const { request, pathInfo } = exchange
    // The mount may end in /register or be above it.
    const path = pathInfo.startsWith('/register/') ? pathInfo : `/register${pathInfo}`
    if (path !== registerPaths.submit) this.#limits.takeRead(request.remoteAddress)
    const { invitations } = registerPaths
    if (path === invitations || path.startsWith(`${invitations}/`)) {
      return await this.#invitations.handle(exchange, path.slice(invitations.length))
    }
    switch (path) {
      case registerPaths.submit:
        allow(request.method, ['POST'])
        return await this.#submit(exchange)
      case registerPaths.verify:
        allow(request.method, ['GET', 'HEAD', 'POST'])
        return request.method === 'POST'
          ? await this.#verification.confirm(exchange)
          : await this.#verification.show(exchange)
    }
    const read = this.#reads.get(path)
    if (read === undefined) throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
    allow(request.method, ['GET', 'HEAD'])
    return await read(exchange)
  }

  readonly #reads: ReadonlyMap<string, (exchange: Exchange) => Promise<GatewayResponse>> = new Map([
    [registerPaths.config, async (exchange: Exchange) => await this.#config(exchange)],
    [registerPaths.values, async (exchange: Exchange) => await this.#values(exchange)],
    [registerPaths.challenge, async () => await this.#challenge()],
    [registerPaths.invitation, async (exchange: Exchange) => await this.#invitations.offer(exchange)],
    [registerPaths.swagger, async (exchange: Exchange) => answer(registerApi.swagger(placeOf(exchange)))],
    [registerPaths.openapi, async (exchange: Exchange) => answer(registerApi.openApi(placeOf(exchange)))],
  ])

  async #config({ subject }: Exchange): Promise<GatewayResponse> {
    const attributes = []
    for (const attribute of this.#settings.attributes) {
      attributes.push(viewFormAttribute(attribute, await this.#lists.shown(attribute, subject)))
    }
    return answer(configView(this.#settings, attributes))
  }

  async #values({ request, subject }: Exchange): Promise<GatewayResponse> {
    for (const name of ['name', 'search']) {
      if (request.query.getAll(name).length > 1) {
        throw new GatewayError('BAD_REQUEST', `"${name}" twice`, { publicText: `${name} may be given once.` })
      }
    }
    const name = request.query.get('name') || undefined
    return answer(await this.#lists.find(name, request.query.get('search') ?? '', subject))
  }

  async #challenge(): Promise<GatewayResponse> {
    if (!('challenge' in this.#humanCheck)) throw new GatewayError('NOT_FOUND', 'the form asks for no proof of work')
    return answer(await this.#humanCheck.challenge())
  }

  async #submit(exchange: Exchange): Promise<GatewayResponse> {
    try {
      const outcome = await this.#take(exchange)
      this.#count(eventOf(outcome))
      return outcome.kind === 'refused' ? answer({ errors: outcome.errors }, 500) : answer(outcome.answer)
    } catch (thrown) {
      const { code, isRefusal } = asGatewayError(thrown)
      this.#count(code === 'TOO_MANY_REQUESTS' ? 'limited' : isRefusal ? 'refused' : 'failed')
      throw thrown
    }
  }

  async #take({ request, subject }: Exchange): Promise<SubmitOutcome> {
    this.#limits.takeSubmit(request.remoteAddress)
    const whole: Readonly<Record<string, unknown>> = await readJsonBody(request, this.#body, maxBodyBytes)
    const { honeypotField } = this.#settings.given
    const isBot = honeypotField !== undefined && (whole[honeypotField] ?? '') !== ''
    return await this.#registrar.submit(whole as ReadRequest, isBot, subject, request)
  }
}

function eventOf(outcome: SubmitOutcome): RegistrationEvent {
  if (outcome.kind === 'refused') return outcome.notHuman === true ? 'not-human' : 'refused'
  return outcome.answer.verificationSent === true ? 'mailed' : 'started'
}

const placeOf = ({ mount, request }: Exchange): ApiPlace => ({
  origin: request.origin,
  base: mount.replace(/\/register$/, ''),
  prefix: '/register',
})

function allow(method: string, methods: readonly string[]): void {
  if (methods.includes(method)) return
  throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: methods.join(', ') } })
}

const maxBody = 8 * 1024
const maxToken = 200

/** The page that a mail links to. Opening it confirms nothing, since programs open links too; its button does. */
class VerificationPage {
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

/** No other site may press the button. Clients other than browsers send no origin. */
function isOwnPage(request: GatewayRequest): boolean {
  const site = header(request, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin'
  const origin = header(request, 'origin')
  return origin === undefined || origin === request.origin
}
