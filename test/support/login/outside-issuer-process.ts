import { createServer } from 'node:http'
import process from 'node:process'
import Provider, { type ClientMetadata } from 'oidc-provider'

/**
 * An issuer in its own process: `?as=LOGIN` at its login page logs that user in, and consent is always given. As at
 * many issuers, users choose their mail address: `LOGIN~ADDRESS`, or `LOGIN~ADDRESS~verified` if it was verified.
 */
interface IssuerSettings {
  readonly port: number
  readonly clients: readonly ClientMetadata[]
}

const { port, clients } = JSON.parse(process.env['OUTSIDE_ISSUER'] ?? '{}') as IssuerSettings
const issuer = `http://127.0.0.1:${port}`

const provider = new Provider(issuer, {
  clients: [...clients],
  cookies: { keys: ['only for tests'] },
  claims: { openid: ['sub', 'sid'], email: ['email', 'email_verified'], profile: ['name'] },
  conformIdTokenClaims: false,
  features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
  // Its own rejects addresses of this machine.
  fetch: (url, { method, headers, body, redirect, signal }: RequestInit = {}) =>
    fetch(url, { method, headers, body, redirect, signal } as RequestInit),
  interactions: { url: (_context, { uid }) => `/login/${uid}` },
  findAccount: async (_context, sub) => ({
    accountId: sub,
    claims: async () => {
      const [login = '', address = `${login}@corp.test`, verified] = sub.split('~')
      const word = verified === undefined ? {} : { email_verified: true }
      return { sub, email: address, ...word, name: login.toUpperCase() }
    },
  }),
  async loadExistingGrant(context) {
    const grant = new context.oidc.provider.Grant({
      clientId: context.oidc.client?.clientId ?? '',
      accountId: context.oidc.session?.accountId ?? '',
    })
    grant.addOIDCScope('openid email profile')
    await grant.save()
    return grant
  },
})

provider.on('backchannel.error', (_context, error) => console.error(error))

const answer = provider.callback()
createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', issuer)
  if (!url.pathname.startsWith('/login/')) {
    void answer(request, response)
    return
  }
  const accountId = url.searchParams.get('as')
  if (accountId === null) {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('who are you?')
    return
  }
  await provider.interactionFinished(
    request,
    response,
    accountId === 'nobody' ? { error: 'access_denied' } : { login: { accountId } },
  )
}).listen(port, '127.0.0.1', () => console.log('ready'))
