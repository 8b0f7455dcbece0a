import { hash, timingSafeEqual } from 'node:crypto'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { issuerIdentity } from '#identity/identity.ts'
import { bearerRefusals, readBearer } from '#protocols/jwt/bearer.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  token: text({
    about: 'The accepted tokens, one per line: each the token itself, or `sha256:` and its SHA-256 in hexadecimal.',
    required: true,
    secret: true,
  }),
  userName: text({ about: 'The `uid` of the caller that has the token.', required: true }),
  realm: text({ about: 'The realm named in `WWW-Authenticate`.', fallback: 'gatehouse' }),
}

/** A static token of one caller, for identity providers that support nothing else. */
export default defineAuthMechanism({
  className: 'auth.BearerToken',
  parameters,
  parse: (params, issues, context) => {
    const { token, userName, realm } = readParameters(parameters, params, issues, context)
    const report = (problem: string) => issues.error(params.pathOf('token'), `"token": ${problem}`)
    return { hashes: readTokens(token, report), userName, realm }
  },
  callers: () => 'programs',
  clients: ({ userName }) => [userName],
  create: ({ hashes, userName, realm }) => {
    const refusals = bearerRefusals(realm, undefined)
    const attributes = Attributes.from({ uid: [userName], objectClass: ['inetOrgPerson'] })
    const identity = issuerIdentity('auth.BearerToken', userName)
    const isAccepted = (token: string): boolean => {
      const sent = sha256(token)
      return hashes.filter((accepted) => timingSafeEqual(accepted, sent)).length > 0
    }
    return {
      async begin({ request, root }) {
        const bearer = readBearer(request.headers)
        if (bearer.kind === 'none') return refusals.noToken
        if (bearer.kind === 'malformed') return refusals.badHeader(bearer.reason)
        if (!isAccepted(bearer.token)) {
          return refusals.badToken('the token is not configured', 'The token is not accepted')
        }
        const dn = Dn.parse(root).child('ou', 'tokens').child('uid', userName)
        return { kind: 'authenticated', subject: { dn, identity, uid: userName, attributes } }
      },
    }
  },
})

const shortest = 20
const mostTokens = 10
const hashForm = /^sha256:([0-9a-f]{64})$/i
/** What a bearer token may consist of (RFC 6750 2.1). */
const tokenForm = /^[A-Za-z0-9._~+/-]+=*$/

/** Problems name the line, never its content. */
function readTokens(text: string, report: (problem: string) => void): Buffer[] {
  const hashes: Buffer[] = []
  for (const [i, whole] of text.split('\n').entries()) {
    const line = whole.trim()
    if (line === '') continue
    const given = hashForm.exec(line)?.[1]
    if (given !== undefined) hashes.push(Buffer.from(given, 'hex'))
    else if (line.startsWith('sha256:')) report(`line ${i + 1}: expected 64 hexadecimal digits after "sha256:"`)
    else if (!tokenForm.test(line)) report(`line ${i + 1}: a bearer token has letters, digits and -._~+/ only`)
    else if (line.length < shortest) report(`line ${i + 1}: a token needs at least ${shortest} characters`)
    else hashes.push(sha256(line))
  }
  if (hashes.length > mostTokens) report(`at most ${mostTokens} tokens are accepted, not ${hashes.length}`)
  return hashes
}

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
