import { IssuerClient } from '#modules/auth-mechanisms/openid-connect/issuer-client.ts'
import { OutsideLogin } from '#modules/auth-mechanisms/openid-connect/outside-login.ts'
import {
  type OpenIdConnectConfig,
  parameters,
  parseOpenIdConnect,
} from '#modules/auth-mechanisms/openid-connect/parameters.ts'
import { defineAuthMechanism } from '#sdk/auth-mechanism.ts'

/** A login at another issuer (OpenID Connect, code flow with PKCE). */
export default defineAuthMechanism<OpenIdConnectConfig>({
  className: 'auth.OpenIDConnect',
  aliases: ['com.tremolosecurity.unison.proxy.auth.openidconnect.OpenIDConnectAuthMech'],
  parameters,
  interactive: true,
  parse: parseOpenIdConnect,
  create: async (config, host) =>
    new OutsideLogin(config, new IssuerClient(await import('openid-client'), config, host.clock, host.log), host),
})
