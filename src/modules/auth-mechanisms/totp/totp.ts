import { authenticatorApp } from '#modules/auth-mechanisms/totp/authenticator-app.ts'
import { openTotp } from '#protocols/otp/totp.ts'
import { defineAuthMechanism } from '#sdk/auth-mechanism.ts'
import { flag, text } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import { SecondFactorLogin } from '#sdk/second-factor-login.ts'

const parameters = {
  issuer: text({ about: 'What authenticator apps call this service.', fallback: 'Gatehouse' }),
  enrol: flag({
    about: '`"true"`: somebody without any second factor sets one up at their next login; else they are refused.',
  }),
}

/** A code of an authenticator app (RFC 6238), after a mechanism that says who it is. */
export default defineAuthMechanism({
  className: 'auth.Totp',
  parameters,
  interactive: true,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  create: async ({ issuer, enrol }, host) =>
    new SecondFactorLogin(authenticatorApp({ issuer, totp: await openTotp(), clock: host.clock }), enrol, host),
})
