import type { FactorHost } from '#features/account/second-factors/factor-host.ts'
import {
  type FactorDialogue,
  SecondFactorLogin,
  warnOfNewFactors,
  withoutFactor,
  withoutFactorParameters,
} from '#features/account/second-factors/second-factor-login.ts'
import type { Clock } from '#kernel/clock.ts'
import { openTotp, qrCode, type Totp } from '#protocols/otp/totp.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { html, type Markup } from '#sdk/page/page.ts'
import { type Texts, textsFor } from '#sdk/page/page-texts.ts'

/** Where OpenUnison stored keys, and its page. */
const formerParameters = {
  formURI: text({ about: 'Not used: the page is part of Gatehouse.' }),
  keyName: text({ about: 'Not used: keys are encrypted in the database of Gatehouse.' }),
  attributeName: text({ about: 'Not used: users set up their authenticator app again. `check` says so.' }),
  windowSize: text({ about: 'Not used: a code is valid in its half minute, and in the one before and after.' }),
}

const parameters = {
  issuer: text({ about: 'The name of this service in authenticator apps.', fallback: 'Gatehouse' }),
  ...withoutFactorParameters,
  ...formerParameters,
}

/** A code of an authenticator app (RFC 6238), after a mechanism that identifies the user. */
export default defineAuthMechanism({
  className: 'auth.Totp',
  aliases: ['com.tremolosecurity.proxy.auth.otp.OTPAuth'],
  parameters,
  interactive: true,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.attributeName !== undefined || given.keyName !== undefined) {
      warnOfNewFactors(given, params.pathOf(given.attributeName === undefined ? 'keyName' : 'attributeName'), issues)
    }
    return { issuer: given.issuer, without: withoutFactor(given, params, issues) }
  },
  create: async ({ issuer, without }, host: FactorHost) =>
    new SecondFactorLogin(authenticatorApp({ issuer, totp: await openTotp(), clock: host.clock }), without, host),
})

interface AuthenticatorAppParts {
  readonly issuer: string
  readonly totp: Totp
  readonly clock: Clock
}

const codeField = (t: Texts): Markup => html`<label for="code">${t('totp.code')}</label>
<input id="code" name="code" type="text" inputmode="numeric" autocomplete="one-time-code" maxlength="16" required autofocus aria-describedby="problem">`

/** A page for the code, and one that shows the secret as image, link and text. Neither needs a script. */
const authenticatorApp = ({ issuer, totp, clock }: AuthenticatorAppParts): FactorDialogue => ({
  kind: 'totp',
  titles: { ask: 'totp.ask', enrol: 'totp.enrol' },
  defaultName: 'Authenticator app',
  async ask({ action, state, request }) {
    const t = textsFor(request)
    const content = html`<p>${t('totp.askText')}</p>
<form method="post" action="${action}">
${codeField(t)}
<button type="submit">${t('login.continue')}</button>
</form>`
    return { content, state }
  },
  async check(_turn, form, factors) {
    const code = form.get('code') ?? ''
    for (const factor of factors) {
      const counter = totp.check(String(factor.secret['secret']), code, clock(), factor.counter)
      if (counter !== undefined) return { factor, counter }
    }
    return undefined
  },
  async enrol({ action, state: before, owner, request }) {
    const t = textsFor(request)
    const state = typeof before['secret'] === 'string' ? before : { secret: totp.newSecret() }
    const secret = String(state['secret'])
    const uri = totp.uri(secret, issuer, owner.uid)
    const content = html`<p>${t('totp.enrolText')}</p>
${await image(uri, t)}
<p>${t('totp.key')} <code>${secret.replaceAll(/(.{4})(?=.)/g, '$1 ')}</code></p>
<p><a href="${uri}">${t('totp.open')}</a></p>
<form method="post" action="${action}">
${codeField(t)}
<button type="submit">${t('totp.set')}</button>
</form>`
    return { content, state }
  },
  async accept({ state: { secret } }, form) {
    if (typeof secret !== 'string') return undefined
    const counter = totp.check(secret, form.get('code') ?? '', clock(), 0)
    return counter === undefined ? undefined : { secret: { secret }, counter }
  },
})

async function image(uri: string, t: Texts): Promise<Markup> {
  const { size, path } = await qrCode(uri)
  const box = `0 0 ${size} ${size}`
  return html`<svg role="img" aria-label="${t('totp.image')}" width="240" height="240" viewBox="${box}" shape-rendering="crispEdges"><rect width="100%" height="100%" fill="#fff"/><path d="${path}" fill="#000"/></svg>`
}
