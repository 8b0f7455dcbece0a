import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { parameters, parseOpenIdConnect } from './parameters.ts'

/** A login at another issuer (OpenID Connect, code flow with PKCE). */
export default defineAuthMechanism({
  className: 'auth.OpenIDConnect',
  aliases: ['com.tremolosecurity.unison.proxy.auth.openidconnect.OpenIDConnectAuthMech'],
  parameters,
  interactive: true,
  parse: parseOpenIdConnect,
  /** Loaded on first use: a gateway without this mechanism is smaller and starts sooner. */
  create: async (config, host) => {
    const { IssuerClient } = await import('./issuer-client.ts')
    const { OutsideLogin } = await import('./outside-login.ts')
    return new OutsideLogin(config, new IssuerClient(await import('openid-client'), config, host), host)
  },
})
