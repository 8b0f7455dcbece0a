import { readFileSync } from 'node:fs'
import { passkeyDialogue } from '#modules/auth-mechanisms/passkey/passkey-dialogue.ts'
import { SecondFactorLogin, withoutFactor, withoutFactorParameters } from '#modules/shared/login/second-factor-login.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { choice, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  rpId: text({ about: 'The domain that passkeys are for: the host when absent, or a domain above it.' }),
  rpName: text({ about: 'The name of this service in browsers.', fallback: 'Gatehouse' }),
  userVerification: choice(['required', 'preferred', 'discouraged'], {
    about: 'Whether the device checks a PIN, finger or face: `required`, `preferred` or `discouraged`.',
    fallback: 'preferred',
  }),
  ...withoutFactorParameters,
}

/** A passkey or security key (WebAuthn), after a mechanism that says who it is. */
export default defineAuthMechanism({
  className: 'auth.Passkey',
  parameters,
  interactive: true,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.rpId !== undefined && !/^(?:[a-z0-9-]+\.)*[a-z0-9-]+$/.test(given.rpId)) {
      issues.error(params.pathOf('rpId'), `"rpId": must be a domain in lower case, not "${given.rpId}"`)
    }
    return { ...given, without: withoutFactor(given, params, issues) }
  },
  create: ({ without, rpId, rpName, userVerification }, host) => {
    const script = readFileSync(new URL('./passkey-page.js', import.meta.url), 'utf8')
    return new SecondFactorLogin(
      passkeyDialogue({ rpId, rpName, userVerification, script, log: host.log }),
      without,
      host,
    )
  },
})
