import {
  type ImportedIssuer,
  type ImportedUrl,
  isHost,
  issuerOf,
  type ProxiedKind,
  proxiedUrls,
} from './proxied-applications.ts'

interface Replacement {
  readonly what: string
  /** In the folder `instead`, by name. */
  readonly files: Readonly<Record<string, string>>
}

/** Beside the objects that are set aside, since nothing there is served. */
export const insteadFolder = 'set-aside/instead'

/** What serves the applications of the charts without a reverse proxy, by the identity provider of the import. */
export function proxyReplacements(
  urls: readonly ImportedUrl[],
  installation: string,
): ReadonlyMap<ProxiedKind, Replacement> {
  const issuer = issuerOf(urls)
  const found = proxiedUrls(urls)
  const made = new Map<ProxiedKind, Replacement>()
  const host = (kind: ProxiedKind): string | undefined => found.get(kind)?.hosts.find(isHost)
  if (issuer === undefined) return made
  const [headlamp, dashboard, api] = [found.get('headlamp'), found.get('dashboard'), host('api')]
  if (headlamp !== undefined) made.set('headlamp', headlampLogin(issuer, headlamp))
  const dashboardHost = host('dashboard')
  if (dashboard !== undefined && dashboardHost !== undefined) {
    made.set('dashboard', dashboardLogin(issuer, dashboard, dashboardHost))
  }
  if (api !== undefined)
    made.set('api', apiProxy(issuer.address, api, isHost(installation) ? installation : 'orchestra'))
  return made
}

const lifetime = 600_000

/** Tokens name the client that they are for, and the API server accepts the clients that it knows. */
const audienceNote = (client: string, { impersonates }: ImportedUrl): string =>
  impersonates
    ? `# OpenUnison acted for the users by impersonation. Now the API server must accept the tokens of the client "${client}": list it under
# "audiences" of its AuthenticationConfiguration. Where you can't configure the API server, run a kube-oidc-proxy with
# --oidc-client-id=${client}, and let the application call that one.`
    : `# The API server must accept the tokens of the client "${client}": list it beside "kubernetes" under "audiences" of its
# AuthenticationConfiguration.`

function headlampLogin(issuer: ImportedIssuer, url: ImportedUrl): Replacement {
  const text = `# Headlamp logs in its users itself.
#
# Headlamp needs a host name of its own: on that of the portal, it would get the session cookies of the portal. Put it into
# values.yaml as HEADLAMP_HOST, move this file to trusts/, and start Headlamp with these arguments:
#
#   -oidc-idp-issuer-url=${issuer.address}
#   -oidc-client-id=headlamp
#   -oidc-use-pkce=true
#   -oidc-scopes=profile,email,groups
#   -oidc-callback-url=https://HEADLAMP_HOST/headlamp/oidc-callback
#
${audienceNote('headlamp', url)}
apiVersion: openunison.tremolo.io/v1
kind: Trust
metadata: { name: headlamp }
spec:
  label: Headlamp
  clientId: headlamp
  publicEndpoint: true
  redirectURI: ["https://#[HEADLAMP_HOST]/headlamp/oidc-callback"]
  authChainName: ${issuer.chain}
  accessTokenTimeToLive: ${lifetime}
`
  return { what: 'Headlamp has a login of its own', files: { 'headlamp-trust.yaml': text } }
}

function dashboardLogin(issuer: ImportedIssuer, url: ImportedUrl, host: string): Replacement {
  const client = 'kubernetes-dashboard'
  const upstream = /^https?:\/\/[\w.:-]+$/.test(url.upstream)
    ? url.upstream
    : 'https://kubernetes-dashboard.kubernetes-dashboard.svc'
  const trust = `# oauth2-proxy logs in the users of the dashboard. Move this file to trusts/, and put a random text into
# secrets/${client}-login/client-secret.
apiVersion: openunison.tremolo.io/v1
kind: Trust
metadata: { name: ${client} }
spec:
  label: Kubernetes dashboard
  clientId: ${client}
  clientSecret: { secretName: ${client}-login, keyName: client-secret }
  redirectURI: ["https://${host}/oauth2/callback"]
  authChainName: ${issuer.chain}
  accessTokenTimeToLive: ${lifetime}
`
  const values = `# Values of the chart oauth2-proxy, which logs in the users of the dashboard and passes their id_tokens on:
#
#   helm upgrade --install dashboard-login oauth2-proxy/oauth2-proxy -n kubernetes-dashboard -f ${client}-oauth2-proxy-values.yaml
#
# Let the Ingress of ${host} lead to it. The Secret ${client}-login has client-id (${client}), client-secret (that
# of the trust) and cookie-secret (32 random characters).
#
${audienceNote(client, url)}
config:
  existingSecret: ${client}-login
  configFile: |-
    provider = "oidc"
    oidc_issuer_url = "${issuer.address}"
    redirect_url = "https://${host}/oauth2/callback"
    scope = "openid profile email groups"
    oidc_email_claim = "sub"
    email_domains = [ "*" ]
    code_challenge_method = "S256"
    skip_provider_button = true
    reverse_proxy = true
    # The id_token, in "Authorization: Bearer". It is replaced before it expires.
    pass_authorization_header = true
    cookie_refresh = "${lifetime / 60_000 - 1}m"
    # oauth2-proxy must trust the certificate of the dashboard.
    upstreams = [ "${upstream}" ]
`
  const files = { [`${client}-trust.yaml`]: trust, [`${client}-oauth2-proxy-values.yaml`]: values }
  return { what: 'oauth2-proxy logs in the users of the dashboard', files }
}

function apiProxy(issuer: string, host: string, installation: string): Replacement {
  const [, openUnisonHost = '', path = ''] = /^https:\/\/([^/]+)(.*)$/.exec(issuer) ?? []
  const ofChart = '/auth/idp/k8sIdp'
  const other = `# The chart has the path ${ofChart} built in: set --oidc-issuer-url of its Deployment to the issuer after each installation.\n`
  const values = `# Values of OpenUnison's chart of kube-oidc-proxy, which verifies id_tokens of ${issuer}
# and calls the API server for their users:
#
#   helm upgrade --install kube-oidc-proxy tremolo/orchestra-kube-oidc-proxy -n openunison -f kube-oidc-proxy-values.yaml
#
# Let the Ingress of ${host} lead to its Service kube-oidc-proxy-${installation}. It runs as the ServiceAccount openunison-${installation}, and by that
# account's right to impersonate users: keep both when you remove OpenUnison. It has no azRules: RBAC of the cluster decides.
${path === ofChart ? '' : other}enable_impersonation: true
network:
  openunison_host: ${JSON.stringify(openUnisonHost)}
  api_server_host: ${JSON.stringify(host)}
impersonation:
  use_jetstack: true
  orchestra_release_name: ${JSON.stringify(installation)}
`
  return { what: 'kube-oidc-proxy serves the API server', files: { 'kube-oidc-proxy-values.yaml': values } }
}
