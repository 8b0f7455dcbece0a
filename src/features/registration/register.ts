import type { RegistrationHost } from '#features/registration/host.ts'
import type { RegistrationEvent } from '#features/registration/service/registrations.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { jsonBody } from '#kernel/json.ts'
import { openPasswordRules, type PasswordRules } from '#protocols/passwords/password-rules.ts'
import { placeBelow } from '#sdk/api/api-description.ts'
import { answer, jsonHeaders } from '#sdk/api/json-answer.ts'
import { readJsonBody } from '#sdk/api/json-body.ts'
import { servedBy } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import { localizedAttribute, viewFormAttribute } from '#sdk/forms/form-attribute.ts'
import { portalLook } from '#sdk/forms/page-theme.ts'
import type { ErrorFormat } from '#sdk/http/error-format.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import type { PageLook } from '#sdk/http/page-look.ts'
import { readForm } from '#sdk/http/read-form.ts'
import {
  acceptedLanguage,
  type ConfiguredTexts,
  originalText,
  type Translate,
  translator,
} from '#sdk/page/configured-texts.ts'
import { html, notice, page } from '#sdk/page/page.ts'
import { languageOf, type TextKey, textsFor, textsIn } from '#sdk/page/page-texts.ts'
import type { ValueSource } from '#sdk/target/mapper.ts'
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
import { actionOf, configView, openUnisonConfigView, submittedText, ValueLists } from './registration-form.ts'
import type { RegistrationHandler } from './registration-handler.ts'
import type { OffersForm } from './service/offered-form.ts'

const maxBodyBytes = 256 * 1024

/** `errors` as for a rejected registration; the problems of the body replace the general text. */
export const registerErrors: ErrorFormat = ({ publicText, problems, code }, requestId) => ({
  headers: jsonHeaders,
  body: jsonBody({
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
  summarize: ({ workflow, handler, humanCheck }) => [
    { label: 'workflow', value: workflow ?? `chosen by ${handler?.className}` },
    { label: 'human check', value: humanCheck },
  ],
  flow: ({ given, places, workflow }) => ({
    produces: places,
    workflows: workflow === undefined ? [] : [workflow],
    reads: [],
    target: undefined,
    given: [given.uidAttributeName],
  }),
  api: () => registerApi.served(placeBelow('/register'), { formats: ['openapi', 'swagger'], users: registerApi }),
  offers: (settings): OffersForm => ({
    form: {
      workflow: settings.workflow ?? '',
      fields: settings.attributes.map(({ name, displayName: label, items }) => ({ name, label, items })),
    },
    invitations: invitationForm(settings),
  }),
  create: openRegister,
})

async function openRegister(settings: RegisterSettings, host: RegistrationHost): Promise<Filter> {
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
  let handler: RegistrationHandler | undefined
  try {
    handler = await settings.handler?.create(host)
  } catch (error) {
    await close()
    throw error
  }
  closing.push(() => handler?.close?.())
  const humanCheck = openHumanCheck(settings, host)
  const passwords = openPasswords(settings, host)
  closing.push(
    () => humanCheck.close(),
    () => passwords.close(),
  )
  return new RegisterFilter({ settings, host, sources, handler, humanCheck, passwords, close })
}

function openHumanCheck(
  { given, humanCheck: kind }: RegisterSettings,
  host: RegistrationHost,
): HumanCheck | ProofOfWork {
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

const openPasswords = ({ given }: RegisterSettings, host: RegistrationHost): PasswordRules =>
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
  readonly host: RegistrationHost
  readonly sources: ReadonlyMap<string, ValueSource>
  readonly handler: RegistrationHandler | undefined
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
  readonly #texts: ConfiguredTexts | undefined

  constructor({ settings, host, sources, handler, humanCheck, passwords, close }: RegisterParts) {
    const { attributes, given } = settings
    const form = formName(host.name, settings)
    const mails = new Mails(settings)
    this.close = close
    this.#count = (event) => host.registrations.counted(form, event)
    this.#settings = settings
    this.#texts = host.texts
    this.#humanCheck = humanCheck
    this.#lists = new ValueLists({ attributes, sources, minSearchChars: given.minSearchChars, log: host.log })
    this.#limits = new Limits(given, form, host.rateLimits)
    this.#registrar = new Registrar({
      settings,
      form,
      sources,
      handler,
      humanCheck,
      passwords,
      mails,
      limits: this.#limits,
      host,
    })
    this.#verification = new VerificationPage(this.#registrar, settings, host.texts)
    this.#invitations = new InvitationsApi({ settings, form, mails, limits: this.#limits, host })
    this.#body = readRequest(given.honeypotField)
  }

  async handle(exchange: Exchange): Promise<GatewayResponse> {
    // The mount may end in /register or be above it.
    const path = exchange.pathInfo.replace(/^\/register(?=\/)/, '')
    if (path !== '/submit') await this.#limits.takeRead(exchange.request.remoteAddress)
    return await RegisterFilter.#api.answer(this, exchange, path)
  }

  static readonly #api = servedBy<RegisterFilter, keyof typeof registerApi.description.operations>(
    registerApi,
    {
      getConfig: (filter, exchange) => filter.#config(exchange),
      getValues: (filter, exchange) => filter.#values(exchange),
      submit: (filter, exchange) => filter.#submit(exchange),
      getChallenge: (filter) => filter.#challenge(),
      showVerification: (filter, exchange) => filter.#verification.show(exchange),
      verify: (filter, exchange) => filter.#verification.confirm(exchange),
      getInvitation: (filter, exchange) => filter.#invitations.offer(exchange),
      listInvitations: (filter, exchange) => filter.#invitations.list(exchange),
      invite: (filter, exchange) => filter.#invitations.create(exchange),
      revokeInvitation: (filter, exchange, id = '') => filter.#invitations.revoke(exchange, id),
      resendInvitation: (filter, exchange, id = '') => filter.#invitations.resend(exchange, id),
    },
    placeBelow('/register'),
  )

  async #config({ request, subject }: Exchange): Promise<GatewayResponse> {
    const language = acceptedLanguage(request)
    const translate = translator(this.#texts, language)
    const attributes = []
    for (const attribute of this.#settings.attributes) {
      const items = await this.#lists.shown(attribute, subject)
      const shown = items.map((item) => ({ ...item, name: translate(item.name) }))
      attributes.push(viewFormAttribute(localizedAttribute(attribute, translate), shown))
    }
    const config = configView(this.#settings, attributes, { translate, t: textsIn(language) })
    const isOpenUnison = this.#settings.given.configFormat === 'openunison'
    const { headers, ...made } = answer(isOpenUnison ? openUnisonConfigView(this.#settings, config) : config)
    return { ...made, headers: { ...headers, vary: 'accept-language' } }
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
      if (outcome.kind !== 'refused') return answer(outcome.answer)
      return { ...answer({ errors: outcome.errors }, 500), isRefusal: true }
    } catch (thrown) {
      const { code, isRefusal } = asGatewayError(thrown)
      this.#count(code === 'TOO_MANY_REQUESTS' ? 'limited' : isRefusal ? 'refused' : 'failed')
      throw thrown
    }
  }

  async #take({ request, subject }: Exchange): Promise<SubmitOutcome> {
    await this.#limits.takeSubmit(request.remoteAddress)
    const whole: Readonly<Record<string, unknown>> = await readJsonBody(request, this.#body, maxBodyBytes)
    const { honeypotField } = this.#settings.given
    const isBot = honeypotField !== undefined && (whole[honeypotField] ?? '') !== ''
    return await this.#registrar.submit(this.#withListedReason(whole as ReadRequest), isBot, subject, request)
  }

  /** A reason of a list may be sent in any language; it is stored as configured. */
  #withListedReason(body: ReadRequest): ReadRequest {
    const { reasonIsList, reasons } = this.#settings.given
    const listed = reasonIsList ? originalText(body.reason ?? '', reasons, this.#texts) : undefined
    return listed === undefined ? body : { ...body, reason: listed }
  }
}

function eventOf(outcome: SubmitOutcome): RegistrationEvent {
  if (outcome.kind === 'refused') return outcome.notHuman === true ? 'not-human' : 'refused'
  return outcome.answer.verificationSent === true ? 'mailed' : 'started'
}

const maxBody = 8 * 1024
const maxToken = 200

/** The page that a mail links to. Opening it confirms nothing, since programs open links too; its button does. */
class VerificationPage {
  readonly #registrar: Registrar
  readonly #settings: RegisterSettings
  readonly #look: PageLook
  readonly #texts: ConfiguredTexts | undefined

  constructor(registrar: Registrar, settings: RegisterSettings, texts: ConfiguredTexts | undefined) {
    this.#texts = texts
    this.#registrar = registrar
    this.#settings = settings
    this.#look = portalLook(settings.given)
  }

  async show({ request }: Exchange): Promise<GatewayResponse> {
    const token = request.query.get('token') ?? ''
    if (token.length > maxToken || !(await this.#registrar.isPending(token))) return this.#over(request)
    const t = textsFor(request)
    const content = html`<p>${t('verify.text')}</p>
<form method="post" action="${request.path}">
<input type="hidden" name="token" value="${token}">
<button type="submit">${t('verify.submit')}</button>
</form>`
    const title = this.#translate(request)(this.#settings.given['frontPage.title'])
    return page(200, title, content, this.#options(request))
  }

  async confirm({ request }: Exchange): Promise<GatewayResponse> {
    const t = textsFor(request)
    if (!isOwnPage(request)) return this.#notice(request, 403, 'foreign.title', t('verify.foreign'))
    const token = (await readForm(request, maxBody)).get('token') ?? ''
    const outcome = token.length > maxToken ? undefined : await this.#registrar.confirm(token, request)
    if (outcome === undefined) return this.#over(request)
    if (outcome.kind !== 'started') return this.#notice(request, 409, 'verify.inUseTitle', t('verify.inUse'))
    const text = submittedText(this.#settings, { translate: this.#translate(request), t })
    return this.#notice(request, 200, 'verify.thanks', text)
  }

  #translate(request: GatewayRequest): Translate {
    return translator(this.#texts, languageOf(request))
  }

  #over(request: GatewayRequest): GatewayResponse {
    return this.#notice(request, 410, 'verify.overTitle', textsFor(request)('verify.over'))
  }

  #notice(request: GatewayRequest, status: number, title: TextKey, text: string): GatewayResponse {
    return notice(status, textsFor(request)(title), text, this.#options(request))
  }

  /** The form has a look of its own, and the logo of the host. */
  #options({ headers, look }: GatewayRequest) {
    return { request: { headers, look: { ...look, ...this.#look } }, narrow: true }
  }
}

/** No other site may press the button. Clients other than browsers send no origin. */
function isOwnPage(request: GatewayRequest): boolean {
  const site = header(request, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin'
  const origin = header(request, 'origin')
  return origin === undefined || origin === request.origin
}
