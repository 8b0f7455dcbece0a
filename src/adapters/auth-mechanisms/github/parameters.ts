import { parseTrustedUrl } from '#kernel/address.ts'
import type { Issues } from '#kernel/issues.ts'
import { linkParameters, parseSubjectLink } from '#sdk/login/linked-subject.ts'
import { parsed, text } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

const endpoint = (about: string, address: string) =>
  parsed('URL', parseTrustedUrl, { about, fallback: new URL(address), requirement: `no, \`${address}\`` })

export const parameters = {
  ...linkParameters,
  uidAttr: text({
    about:
      'The attribute that names the user: `login`, or `id`, which stays the same when a user is renamed at GitHub.',
    fallback: 'login',
  }),
  clientid: text({ about: 'The client id of the OAuth app.', required: true }),
  secretid: text({ about: 'Its client secret.', required: true, secret: true }),
  scope: text({
    about: 'The requested scopes. `user:email` is needed for the mail address, `read:org` for orgs and teams.',
    fallback: 'read:user user:email read:org',
  }),
  bearerTokenName: text({ about: 'The slot of the session that keeps the access token; not kept when absent.' }),
  idpURL: endpoint('The page of GitHub that asks the user.', 'https://github.com/login/oauth/authorize'),
  loadTokenURL: endpoint('The token endpoint.', 'https://github.com/login/oauth/access_token'),
  apiUrl: endpoint('The REST API; `https://HOST/api/v3` of a GitHub Enterprise Server.', 'https://api.github.com'),
} satisfies ParameterTable

export type GitHubConfig = ReturnType<typeof parseGitHub>

export function parseGitHub(params: Params, issues: Issues, context: ParseContext) {
  const given = readParameters(parameters, params, issues, context)
  if (!/^[\w.-]{1,80}$/.test(given.bearerTokenName ?? 'none')) {
    const message = '"bearerTokenName": may hold letters, digits, dots, dashes and underscores'
    issues.error(params.pathOf('bearerTokenName'), message)
  }
  const { clientid, secretid, scope, bearerTokenName, idpURL, loadTokenURL, apiUrl } = given
  return {
    clientId: clientid,
    clientSecret: secretid,
    scope,
    tokenSlot: bearerTokenName,
    authorization: idpURL,
    token: loadTokenURL,
    api: apiUrl,
    link: parseSubjectLink(given, params, issues),
  }
}
