import { readFileSync } from 'node:fs'
import type { FactorHost } from '#features/account/second-factors/factor-host.ts'
import {
  type FactorDialogue,
  passkeyUser,
  readPasskey,
  SecondFactorLogin,
  warnOfNewFactors,
  withoutFactor,
  withoutFactorParameters,
} from '#features/account/second-factors/second-factor-login.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import {
  creationOptions,
  type RelyingParty,
  readCredential,
  requestOptions,
  verifyCreation,
  verifyRequest,
} from '#protocols/webauthn/passkeys.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import { choice, flag, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { html, type Markup } from '#sdk/page/page.ts'
import { type TextKey, textsFor } from '#sdk/page/page-texts.ts'

const verifications = ['required', 'preferred', 'discouraged'] as const
const notUsed = 'Not used: passkeys are stored in the database of Gatehouse.'

/** Where OpenUnison stored passkeys, and its page. */
const formerParameters = {
  userVerificationRequirement: choice(verifications, {
    about: 'Another name of `userVerification`.',
    fallback: undefined,
  }),
  attribute: text({ about: 'Not used: users set up their passkeys again. `check` says so.' }),
  encryptionKeyName: text({ about: notUsed }),
  credentialIdAttributeName: text({ about: notUsed }),
  uidAttributeName: text({ about: notUsed }),
  uidAttr: text({ about: notUsed }),
  workflowName: text({ about: notUsed }),
  formURI: text({ about: 'Not used: the page is part of Gatehouse.' }),
  singleStep: flag({ about: '`"true"` is an error: a mechanism before this one has to identify the user.' }),
  allowPassword: flag({ about: 'Not used: it belongs to `singleStep`.' }),
}

const parameters = {
  rpId: text({
    about:
      'The domain that passkeys are for: the host, or a domain above it, so that several hosts share them. Changing it makes all passkeys worthless.',
    requirement: 'no, the host',
  }),
  rpName: text({ about: 'The name of this service in browsers.', fallback: 'Gatehouse' }),
  userVerification: choice(verifications, {
    about: 'Whether the device checks a PIN, finger or face: `required`, `preferred` or `discouraged`.',
    fallback: 'preferred',
  }),
  ...withoutFactorParameters,
  ...formerParameters,
}

/** A passkey or security key (WebAuthn), after a mechanism that identifies the user. */
export default defineAuthMechanism({
  className: 'auth.Passkey',
  aliases: ['com.tremolosecurity.proxy.auth.WebAuthn'],
  parameters,
  interactive: true,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.rpId !== undefined && !/^(?:[a-z0-9-]+\.)*[a-z0-9-]+$/.test(given.rpId)) {
      issues.error(params.pathOf('rpId'), `"rpId": must be a domain in lower case, not "${given.rpId}"`)
    }
    if (given.singleStep) {
      const message = 'a passkey alone does not log in here: put a mechanism such as auth.FormLogin before this one'
      issues.error(params.pathOf('singleStep'), `"singleStep": ${message}, and remove the parameter`)
    }
    if (given.attribute !== undefined) warnOfNewFactors(given, params.pathOf('attribute'), issues)
    const userVerification = given.userVerificationRequirement ?? given.userVerification
    return { ...given, userVerification, without: withoutFactor(given, params, issues) }
  },
  create: ({ without, rpId, rpName, userVerification }, host: FactorHost) => {
    const script = readFileSync(new URL('./passkey-page.js', import.meta.url), 'utf8')
    return new SecondFactorLogin(
      passkeyDialogue({ rpId, rpName, userVerification, script, log: host.log }),
      without,
      host,
    )
  },
})

interface PasskeyParts {
  readonly rpId: string | undefined
  readonly rpName: string
  readonly userVerification: RelyingParty['userVerification']
  /** The script of the page. */
  readonly script: string
  readonly log: Logger
}

const scriptPath = '/passkey.js'

/** Pages whose script requests a passkey from the browser, and puts its answer into a form. */
function passkeyDialogue({ rpId, rpName, userVerification, script, log }: PasskeyParts): FactorDialogue {
  const siteOf = ({ host, origin }: GatewayRequest): RelyingParty => ({
    id: rpId ?? host,
    name: rpName,
    origin,
    userVerification,
  })
  const scriptAnswer = {
    status: 200,
    headers: {
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=3600',
      'x-content-type-options': 'nosniff',
    },
    body: script,
  }
  return {
    kind: 'passkey',
    titles: { ask: 'passkey.ask', enrol: 'passkey.enrol' },
    defaultName: 'Passkey',
    async ask({ request, action, state: before }, factors) {
      const state = await prepared(before, 'get', () => requestOptions(siteOf(request), factors.map(readPasskey)))
      const content = form(request, action, state, { text: 'passkey.askText', button: 'passkey.use' })
      return { content, state, script: scriptPath }
    },
    async check({ request, state }, sent, factors) {
      const response = readCredential(sent.get('response') ?? '')
      if (response === undefined || state['action'] !== 'get') return undefined
      const known = factors.map((factor) => ({ ...readPasskey(factor), counter: factor.counter, factor }))
      const verified = await verifyRequest(siteOf(request), String(state['challenge']), response, known)
      if (verified.ok) return { factor: verified.credential.factor, counter: verified.counter }
      log.info('a passkey was refused', { requestId: request.id, reason: verified.reason })
      return undefined
    },
    async enrol({ request, action, state: before, owner }) {
      const state = await prepared(before, 'create', () => creationOptions(siteOf(request), passkeyUser(owner), []))
      const content = form(request, action, state, { text: 'passkey.enrolText', button: 'passkey.make' })
      return { content, state, script: scriptPath }
    },
    async accept({ request, state }, sent) {
      const response = readCredential(sent.get('response') ?? '')
      if (response === undefined || state['action'] !== 'create') return undefined
      const verified = await verifyCreation(siteOf(request), String(state['challenge']), response)
      if (verified.ok) return { secret: { ...verified.credential }, counter: verified.counter }
      log.info('a new passkey was refused', { requestId: request.id, reason: verified.reason })
      return undefined
    },
    serve: ({ method }, pathInfo) =>
      pathInfo === scriptPath && (method === 'GET' || method === 'HEAD') ? scriptAnswer : undefined,
  }
}

/** The same options until they are answered, so that a page can be reloaded. */
async function prepared(
  before: JsonObject,
  action: 'get' | 'create',
  make: () => Promise<{ readonly options: JsonObject; readonly challenge: string }>,
): Promise<JsonObject> {
  if (before['action'] === action) return before
  const { options, challenge } = await make()
  return { action, options, challenge }
}

/** The script enables the button: a click before it has loaded would send a form without a passkey. */
function form(
  request: GatewayRequest,
  address: string,
  { action, options }: JsonObject,
  { text, button }: { readonly text: TextKey; readonly button: TextKey },
): Markup {
  const t = textsFor(request)
  return html`<p>${t(text)}</p>
<form method="post" action="${address}" data-passkey="${String(action)}" data-options="${JSON.stringify(options)}" data-failed="${t('passkey.failed')}">
<input type="hidden" name="response" value="">
<button type="submit" disabled>${t(button)}</button>
</form>
<noscript><p>${t('passkey.noScript')}</p></noscript>`
}
