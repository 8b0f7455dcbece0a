import * as z from 'zod'
import {
  type OwnPasswordAnswer,
  ownPasswordAnswer,
  ownPasswordConfig,
} from '#features/passwords/contract/own-password.ts'
import type { PasswordHost } from '#features/passwords/host.ts'
import { passwordProblemText } from '#features/passwords/rules/password-problem-text.ts'
import { Attributes } from '#identity/attributes.ts'
import { callerRef } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import { wireForm } from '#kernel/wire.ts'
import { openPasswordRules, type PasswordRules } from '#protocols/passwords/password-rules.ts'
import { placeBelow } from '#sdk/api/api-description.ts'
import { answer, privateErrors } from '#sdk/api/json-answer.ts'
import { readJsonBody } from '#sdk/api/json-body.ts'
import { pathBelow } from '#sdk/api/routes.ts'
import { ServedApi } from '#sdk/api/served-api.ts'
import { mainErrors } from '#sdk/contract/errors.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import { themeParameters } from '#sdk/forms/theme-parameters.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { anothersLoginText, hasOwnLogin, isAnonymousLogin } from '#sdk/login/own-login.ts'
import { flag, list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { textsFor } from '#sdk/page/page-texts.ts'
import { type PasswordValidator, readValidator } from './password-validator.ts'

const parameters = {
  displayNameAttribute: text({ about: 'The attribute with the name that the page shows.', required: true }),
  'frontPage.title': text({ about: 'The title of the page.', required: true }),
  'frontPage.text': text({ about: 'The text of the page.', required: true }),
  homeURL: text({ about: 'Where the page leads home to.', required: true }),
  logoutURL: text({ about: 'Where the page leads to log out.', required: true }),
  uidAttributeName: text({ about: "The attribute with the caller's login.", required: true }),
  reason: text({ about: 'The reason of the runs, for the audit.', required: true }),
  workflowName: text({
    about:
      'The workflow that sets the password, by a [provision](../workflow-tasks/provision.md) with `setPassword: true`.',
    required: true,
    reference: 'workflow',
  }),
  validatorClassName: text({
    about: 'The rules for passwords: `BasicValidator` or `ActiveDirectoryValidator`.',
    required: true,
  }),
  'validator.params': list({
    about:
      'Their settings, each as `name=value`: `minChars` (8), `maxChars` (128), `requireLower`, `requireUpper`, `requireNumber`, `requireSpecial`, `minRequirements`, and `attributesToCheck=label=attribute` of `ActiveDirectoryValidator`.',
  }),
  synchronous: flag({ about: '`"true"`: the answer waits for the workflow, and has its errors.' }),
  maxLoginMinutes: wholeNumber({
    about: "The maximum age of the caller's login, since the current password is not asked; 0 for any.",
    fallback: 15,
    max: 1_440,
  }),
  ...themeParameters(),
  headerTitle: text({ about: 'The title of the page header.', fallback: 'Gatehouse' }),
}

interface OwnPasswordSettings {
  readonly given: ParsedParameters<typeof parameters>
  readonly validator: PasswordValidator
}

/** The API of the page on which users set their own password. */
export default defineFilter<OwnPasswordSettings>({
  className: 'filters.OwnPassword',
  aliases: ['com.tremolosecurity.scalejs.password.ws.ScalePassword'],
  parameters,
  answers: true,
  errors: privateErrors,
  parse: parseOwnPassword,
  summarize: ({ given }) => [{ label: 'workflow', value: given.workflowName }],
  api: () => ownPasswordApi.served(placeBelow('/password'), { formats: ['openapi', 'swagger'], users: ownPasswordApi }),
  create: createOwnPassword,
})

function parseOwnPassword(params: Params, issues: Issues, context: ParseContext): OwnPasswordSettings {
  const given = readParameters(parameters, params, issues, context)
  return { given, validator: readValidator(given.validatorClassName, given['validator.params'], params, issues) }
}

interface OwnPasswordParts extends OwnPasswordSettings {
  readonly host: PasswordHost
  readonly rules: PasswordRules
}

function createOwnPassword(settings: OwnPasswordSettings, host: PasswordHost): Filter {
  const { minChars, maxChars } = settings.validator
  const rules = openPasswordRules({ minChars, maxChars, breachListURL: undefined, acceptUnchecked: true }, host.log)
  const parts: OwnPasswordParts = { ...settings, host, rules }
  return {
    close: () => rules.close(),
    async handle(exchange) {
      const { subject } = exchange
      if (subject.level === 0 || isAnonymousLogin(subject.uid)) {
        throw new GatewayError('AUTH_REQUIRED', 'a password needs a login')
      }
      return await ownPasswordApi.answer(parts, exchange, pathBelow('/password', exchange))
    },
  }
}

async function showConfig({ given }: OwnPasswordParts, { subject }: Exchange): Promise<GatewayResponse> {
  const { homeURL, logoutURL } = given
  return answer(
    wireForm(ownPasswordConfig, {
      config: {
        ...given,
        frontPage: { title: given['frontPage.title'], text: given['frontPage.text'] },
        uidAttribute: given.uidAttributeName,
        runSynchronously: given.synchronous,
      },
      displayName: subject.attributes.first(given.displayNameAttribute) ?? subject.uid,
      homeURL,
      logoutURL,
    }),
  )
}

const maxBodyBytes = 16 * 1024
const given = z.string().max(2_000).nullish()
const bodySchema = z.strictObject({ password1: given, password2: given })

/** Runs the workflow for the caller, and for no one else. */
async function setPassword(parts: OwnPasswordParts, exchange: Exchange): Promise<GatewayResponse> {
  const { given: settings, validator, host, rules } = parts
  const { request, subject, session } = exchange
  const { password1, password2 } = await readJsonBody(request, bodySchema, maxBodyBytes)
  requireFreshLogin(parts, exchange)
  const caller = callerRef(subject, settings.uidAttributeName)
  const password = password1 ?? ''
  const problems = await rules.check({ password, repeated: password2 ?? '', values: [caller.login] }, false)
  const texts = textsFor(request)
  const errors = problems.map((problem) => passwordProblemText(problem, texts))
  if (errors.length === 0) errors.push(...validator.problems(password, subject.attributes))
  // OpenUnison's status for a password that is not accepted.
  if (errors.length > 0) return answer({ errors }, 500)
  if (!(await hasOwnLogin(caller, host.directory, settings.uidAttributeName))) {
    await host.runs.refuse({
      name: settings.workflowName,
      caller: subject.uid,
      subject: caller.login,
      requestId: request.id,
      refused: [{ kind: 'entry', attribute: 'subject', value: caller.login }],
    })
    throw new GatewayError('ACCESS_DENIED', `the login "${caller.login}" belongs to another user`, {
      publicText: anothersLoginText,
    })
  }
  const { status, changes } = await host.runs.run({
    head: {
      workflow: settings.workflowName,
      requester: subject.uid,
      who: { requester: subject.identity, subject: subject.identity },
      reason: settings.reason,
      requestId: request.id,
    },
    user: {
      userID: caller.login,
      attributes: Attributes.from({ [settings.uidAttributeName]: [caller.login] }),
      groups: [],
    },
    keepGroups: true,
    asynchronous: !settings.synchronous,
    password,
    session: session?.id,
    params: {},
  })
  if (status === 'completed' && changes === 0) {
    throw new GatewayError('INTERNAL', `the workflow "${settings.workflowName}" ended without setting the password`)
  }
  return answer({ status } satisfies OwnPasswordAnswer)
}

/** The page does not ask for the current password, so an unattended or stolen session must not be enough. */
function requireFreshLogin({ given: { maxLoginMinutes }, host }: OwnPasswordParts, { session }: Exchange): void {
  if (maxLoginMinutes === 0) return
  const since = session?.authenticated.getTime() ?? Number.NEGATIVE_INFINITY
  if (host.clock().getTime() - since <= maxLoginMinutes * 60_000) return
  throw new GatewayError('ACCESS_DENIED', 'a password change by a login that is too old', {
    publicText: `Sign out and in again first: your login must not be older than ${maxLoginMinutes} minutes.`,
  })
}

/** Everything below `/password`. */
export const ownPasswordApi = new ServedApi<OwnPasswordParts>({
  title: 'Password API',
  version: '1.0.0',
  answers: { PasswordConfig: ownPasswordConfig, PasswordResult: ownPasswordAnswer, Errors: mainErrors },
  bodies: { NewPassword: bodySchema },
  failure: { description: 'What is wrong', schema: 'Errors' },
  documentsAt: placeBelow('/password'),
  operations: {
    getConfig: {
      route: 'GET /config',
      summary: 'What the password page needs to know',
      answer: 'PasswordConfig',
      handle: showConfig,
    },
    setPassword: {
      route: 'POST /submit',
      summary: "Sets the caller's own password by a workflow",
      description: 'The status is "completed" once the password is set; otherwise it is not set yet.',
      body: 'NewPassword',
      answer: 'PasswordResult',
      failures: {
        '403': "The login is too old, or the caller's login belongs to another user",
        '500': 'A password that is not accepted',
      },
      handle: setPassword,
    },
  },
})
