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
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import {
  type AuthAttempt,
  type AuthMechanism,
  type AuthOutcome,
  defineAuthMechanism,
  type LoginAttempt,
} from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { defaultTheme, html, page, parseColour, type Theme } from '#sdk/filter/page.ts'
import { readForm } from '#sdk/filter/read-form.ts'
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
  title: text({ about: 'The heading of the login page.', fallback: 'Sign in' }),
  userLabel: text({ about: 'The label of the login field.', fallback: 'User name' }),
  forgotPasswordURL: parsed('address', parseAddress, {
    about:
      'Where the link “Forgot your password?” leads, such as the path of [filters.Passwords](../filters/filters.Passwords.md): a path of this host, or an http or https address. No link when absent.',
  }),
  themePrimaryMain: parsed('color', parseColour, {
    about: 'The color of the page, as `#rrggbb`.',
    fallback: defaultTheme.main,
  }),
  themePrimaryDark: parsed('color', parseColour, { about: 'Its darker shade.', fallback: defaultTheme.dark }),
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
    const { title, userLabel, forgotPasswordURL, themePrimaryMain: main, themePrimaryDark: dark } = given
    return {
      lookup: parseLookup(given, params, issues),
      uidAttr: given.uidIsFilter ? 'uid' : given.uidAttr,
      page: {
        title,
        userLabel,
        forgotPasswordURL,
        theme: { main, dark },
      },
    }
  },
  create: ({ lookup, uidAttr, page }, host) => {
    if (lookup === undefined) throw new Error('the look-up did not parse')
    return new LoginForm(page, new DirectoryLogin(lookup, uidAttr, host))
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

/** Also the answer to a user whose account is locked under another of its names. */
const wrong = 'The user name or password is wrong, or too many attempts failed. Check both, or try again later.'

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
    const { request, pathInfo } = attempt
    if (pathInfo !== '') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
    if (request.method === 'GET' || request.method === 'HEAD') return this.#ask(attempt, 200)
    if (request.method !== 'POST') {
      throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'GET, HEAD, POST' } })
    }
    const started = performance.now()
    const form = await readForm(request, maxBody)
    const user = (form.get('user') ?? '').trim()
    const password = form.get('pwd') ?? ''
    if (user === '' || password === '' || user.length > maxUser || password.length > maxPassword) {
      return this.#refuse(attempt, started)
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
        await this.#people.checkNobody(password, root)
        return this.#refuse(attempt, started)
      }
      const seconds = turn.retryAfterSeconds
      return this.#ask(attempt, 429, `Too many attempts failed. Try again in ${timeText(seconds)}.`, seconds)
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
    return this.#refuse(attempt, started)
  }

  async #refuse(attempt: LoginAttempt, started: number): Promise<AuthOutcome> {
    const passed = performance.now() - started
    await wait(answerEveryMillis - (passed % answerEveryMillis))
    return this.#ask(attempt, 401, wrong)
  }

  #ask({ login }: LoginAttempt, status: number, problem?: string, retryAfter?: number): AuthOutcome {
    const response = loginPage(this.#page, { action: login.address, status, problem })
    if (retryAfter === undefined) return { kind: 'challenge', response }
    const headers = { ...response.headers, 'retry-after': String(retryAfter) }
    return { kind: 'challenge', response: { ...response, headers } }
  }
}

const timeText = (seconds: number): string =>
  seconds < 90 ? `${seconds} ${seconds === 1 ? 'second' : 'seconds'}` : `${Math.ceil(seconds / 60)} minutes`

interface LoginPage {
  readonly title: string
  readonly userLabel: string
  readonly forgotPasswordURL: string | undefined
  readonly theme: Theme
}

interface LoginPageState {
  /** The address that the form posts to. */
  readonly action: string
  readonly status: number
  readonly problem: string | undefined
}

/** Works without scripts, with the keyboard alone, with screen readers and with password managers. */
function loginPage({ title, userLabel, forgotPasswordURL, theme }: LoginPage, state: LoginPageState): GatewayResponse {
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
      await this.checkNobody(password, root)
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
  async checkNobody(password: string, root: string): Promise<void> {
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
