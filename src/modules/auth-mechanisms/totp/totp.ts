import { authenticatorApp } from '#modules/auth-mechanisms/totp/authenticator-app.ts'
import { SecondFactorLogin, withoutFactor, withoutFactorParameters } from '#modules/shared/login/second-factor-login.ts'
import { openTotp } from '#protocols/otp/totp.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  issuer: text({ about: 'The name of this service in authenticator apps.', fallback: 'Gatehouse' }),
  ...withoutFactorParameters,
}

/** A code of an authenticator app (RFC 6238), after a mechanism that says who it is. */
export default defineAuthMechanism({
  className: 'auth.Totp',
  parameters,
  interactive: true,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    return { issuer: given.issuer, without: withoutFactor(given, params, issues) }
  },
  create: async ({ issuer, without }, host) =>
    new SecondFactorLogin(authenticatorApp({ issuer, totp: await openTotp(), clock: host.clock }), without, host),
})
