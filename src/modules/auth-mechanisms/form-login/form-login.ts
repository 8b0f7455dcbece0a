import { setTimeout as wait } from 'node:timers/promises'
import { isDeactivated } from '#identity/attributes.ts'
import { type DirectoryEntry, directoryLink } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { type FilterTemplate, parseFilterTemplate } from '#identity/filter/filter-template.ts'
import type { UserRef } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import { pageTheme, pageThemeParameters } from '#modules/shared/forms/page-theme.ts'
import { readLoginForm } from '#modules/shared/login/login-form.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import {
  type AuthAttempt,
  type AuthMechanism,
  type AuthOutcome,
  defineAuthMechanism,
  type LoginAttempt,
} from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/filter/http.ts'
import { html, type Markup, page } from '#sdk/filter/page.ts'
import type { Theme } from '#sdk/filter/page-look.ts'
import { durationText, languageOf, textsFor } from '#sdk/filter/page-texts.ts'
import { type ConfiguredTexts, translator } from '#sdk/module/configured-texts.ts'
import { flag, parsed, text } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import { shownAttributes } from '#sdk/module/shown-attributes.ts'

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
    if (lookup === undefined) throw new Error('the look-up did not parse')
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

/** The typed login only ever becomes a value of the filter. */
function parseLookup(
  { uidAttr, uidIsFilter }: ParsedParameters<typeof parameters>,
  params: Params,
  issues: Issues,
): FilterTemplate | undefined {
  const at = params.pathOf('uidAttr')
  try {
    if (!uidIsFilter) Dn.of([uidAttr, 'x'])
    const lookup = parseFilterTemplate(uidIsFilter ? uidAttr : `(${uidAttr}=\${user})`)
    const [unknown] = [...lookup.placeholders].filter((name) => name !== 'user')
    if (unknown === undefined && lookup.placeholders.size === 1) return lookup
    issues.error(
      at,
      unknown === undefined
        ? '"uidAttr": the filter must contain ${user}; without it, every login would find the same user'
        : `"uidAttr": the form has no field "${unknown}", only \${user}`,
    )
  } catch (error) {
    issues.error(at, `"uidAttr": ${error instanceof Error ? error.message : String(error)}`)
  }
  return undefined
}

const maxBody = 16 * 1024
const maxUser = 256
const maxPassword = 1024
/** A failed login is answered at a multiple of this, so that the time does not reveal why. */
const answerEveryMillis = 250

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
    const started = performance.now()
    const form = await readLoginForm(attempt, maxBody)
    if (form === undefined) return this.#ask(attempt, { status: 200 })
    const user = (form.get('user') ?? '').trim()
    const password = form.get('pwd') ?? ''
    if (user === '' || password === '' || user.length > maxUser || password.length > maxPassword) {
      return this.#refuse(attempt, user, started)
    }
    return this.#check(attempt, user, password, started)
  }

  async #check(attempt: LoginAttempt, user: string, password: string, started: number): Promise<AuthOutcome> {
    const { guard, root } = attempt
    let found: FoundLogin | undefined
    const find = async (): Promise<UserRef | undefined> => {
      found = await this.#people.find(user, root)
      return 'subject' in found ? { identity: found.subject.identity, login: found.subject.uid } : undefined
    }
    const turn = await guard.begin(user, { find })
    if (!turn.allowed) {
      if (turn.concealed) {
        await this.#people.checkUnknownLogin(password, root)
        return this.#refuse(attempt, user, started)
      }
      const retryAfter = turn.retryAfterSeconds
      const time = durationText(retryAfter, attempt.request)
      const problem = textsFor(attempt.request)('login.tooMany', { time })
      return this.#ask(attempt, { status: 429, problem, user, retryAfter })
    }
    let checked: Awaited<ReturnType<DirectoryLogin['check']>>
    try {
      const known = found ?? (await this.#people.find(user, root))
      checked = await this.#people.check(known, password, root, attempt.request.isLocal === true)
    } catch (error) {
      await turn.abandoned()
      throw error
    }
    if (checked.ok) {
      await turn.succeeded()
      return { kind: 'authenticated', subject: checked.subject }
    }
    await turn.failed(checked.reason, checked.login)
    return this.#refuse(attempt, user, started)
  }

  /** Also the answer to a user whose account is locked under another of its names. */
  async #refuse(attempt: LoginAttempt, user: string, started: number): Promise<AuthOutcome> {
    const passed = performance.now() - started
    await wait(answerEveryMillis - (passed % answerEveryMillis))
    return this.#ask(attempt, { status: 401, problem: textsFor(attempt.request)('login.wrong'), user })
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

type FoundSubject = Pick<Subject, 'dn' | 'identity' | 'uid' | 'attributes' | 'link'>

type FoundLogin =
  | { readonly subject: FoundSubject; readonly isActive: boolean }
  /** No user matches, or several do. The reason is for the log. */
  | { readonly reason: string }

type PasswordCheck =
  | { readonly ok: true; readonly subject: FoundSubject }
  /** `login` is present if the user exists. The reason is for the log. */
  | { readonly ok: false; readonly reason: string; readonly login?: string }

/** Finds the user of a typed login, and lets the directory check the password. */
class DirectoryLogin {
  readonly #lookup: FilterTemplate
  readonly #uidAttr: string
  readonly #host: Pick<AuthHost, 'directory' | 'log'>
  /** A parent of users, by root, so that an unknown login costs as much work as a known one. */
  readonly #neighbours = new Map<string, Dn>()

  constructor(lookup: FilterTemplate, uidAttr: string, host: Pick<AuthHost, 'directory' | 'log'>) {
    this.#lookup = lookup
    this.#uidAttr = uidAttr
    this.#host = host
  }

  /** The user who has the login. Throws only when the directory does not answer. */
  async find(user: string, root: string): Promise<FoundLogin> {
    const base = Dn.parse(root)
    const filter = this.#lookup.bind(() => [user])
    const found =
      filter === undefined ? [] : await this.#host.directory.search({ base, scope: 'sub', filter, limit: 2 })
    const [entry, second] = found
    if (filter === undefined || entry === undefined) return { reason: 'no such user' }
    if (second !== undefined) return { reason: 'several users match' }
    this.#neighbours.set(base.key, entry.dn)
    return { subject: this.#subjectOf(entry, user, filter), isActive: !isDeactivated(entry.attributes) }
  }

  /** Throws only when the directory does not answer. */
  async check(found: FoundLogin, password: string, root: string, local: boolean): Promise<PasswordCheck> {
    if ('reason' in found) {
      await this.checkUnknownLogin(password, root)
      return { ok: false, reason: found.reason }
    }
    const { subject, isActive } = found
    const { dn, uid: login } = subject
    if (!(await this.#bind(dn, password, local))) return { ok: false, reason: 'wrong password', login }
    return isActive ? { ok: true, subject } : { ok: false, reason: 'switched off', login }
  }

  async #bind(dn: Dn, password: string, local = false): Promise<boolean> {
    try {
      return await this.#host.directory.bind(dn, password, { local })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'NOT_SUPPORTED') throw error
      this.#host.log.warn('login rejected: the directory of this user does not check passwords', { dn: dn.toString() })
      return false
    }
  }

  /** Does the work of a check, for a login that no user has. */
  async checkUnknownLogin(password: string, root: string): Promise<void> {
    const base = Dn.parse(root)
    const neighbour = this.#neighbours.get(base.key) ?? (await this.#anybody(base))
    const parent = neighbour?.parent
    if (parent !== undefined) await this.#bind(parent.child(this.#uidAttr, 'nobody-of-this-name'), password)
  }

  async #anybody(base: Dn): Promise<Dn | undefined> {
    const filter = { kind: 'present', attribute: this.#uidAttr } as const
    const [entry] = await this.#host.directory.search({ base, scope: 'sub', filter, limit: 1 })
    if (entry !== undefined) this.#neighbours.set(base.key, entry.dn)
    return entry?.dn
  }

  #subjectOf(entry: DirectoryEntry, user: string, filter: Filter): FoundSubject {
    const attributes = shownAttributes(entry)
    const link = directoryLink(entry, { filter, uidAttr: this.#uidAttr })
    const uid = attributes.first(this.#uidAttr) ?? user
    return { dn: entry.dn, identity: entry.identity, uid, attributes, link }
  }
}
