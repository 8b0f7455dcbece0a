import { type EndpointName, endpointName } from '#config/configuration/token-endpoint.ts'
import type { TokenConfig, TokenUser } from '#features/portal/contract/token.ts'
import * as schemas from '#features/portal/contract/token.ts'
import type { PortalHost } from '#features/portal/host.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import { jsonBody } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { wireForm } from '#kernel/wire.ts'
import { readBearer } from '#protocols/jwt/bearer.ts'
import { placeBelow } from '#sdk/api/api-description.ts'
import { methodNotAllowed, pathBelow } from '#sdk/api/routes.ts'
import { ServedApi } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { themeParameters } from '#sdk/forms/theme-parameters.ts'
import type { ErrorFormat } from '#sdk/http/error-format.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { flag, list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import {
  attributeLoader,
  commandValues,
  type KubectlSettings,
  kubectlLoader,
  type LoadedTokens,
  parseShellTemplate,
  passwordLoader,
  type Shell,
  type ShellTemplate,
  type TokenLoader,
  totpKey,
  totpLoader,
} from './kubectl-loader.ts'

const ofEndpoint = text({ about: '`StsToken`: not used, since the endpoint says it. `check` says so.' })

const tokenParameters = {
  displayNameAttribute: text({ about: 'The attribute with the name that the portal shows for users.', required: true }),
  'frontPage.title': text({ about: 'The title of the page.', required: true }),
  'frontPage.text': text({ about: 'The text of the page.', required: true }),
  homeURL: text({ about: 'Where the page leads back to.', required: true }),
  logoutURL: text({ about: 'The logout path or address.', required: true }),
  warnMinutesLeft: wholeNumber({
    about: 'Minutes before the end of a session at which users are warned.',
    required: true,
    fallback: 0,
    max: 10_000,
  }),
  tokenClassName: text({
    about:
      'What is shown: `KubectlTokenLoader`, `AttributeToken`, `TOTPToken`, `LoadToken` or `StsToken`; also by the full class names of OpenUnison.',
    required: true,
  }),
  qrCodeAttribute: text({ about: 'The parts that are also shown as a QR code; `TOTP URL` for `TOTPToken`.' }),
  idpName: text({
    about:
      '`KubectlTokenLoader`: the identity provider whose tokens are shown; the latest tokens of the login when absent.',
    reference: 'identity provider',
  }),
  trustName: text({
    about: '`KubectlTokenLoader`: the trust of `idpName`, by the name that the mechanism has for it.',
    requirement: 'with `idpName`',
  }),
  renewTokens: flag({
    about:
      '`KubectlTokenLoader`: `"true"` lets POST make new tokens within the session, where it has a refresh token. Otherwise a new id_token requires logging out and in.',
  }),
  uidAttributeName: text({
    about: '`KubectlTokenLoader`, `TOTPToken`: the attribute with the login; the login itself when absent.',
  }),
  kubectlUsage: text({ about: '`KubectlTokenLoader`: a text that says what to do.' }),
  kubectlTemplate: text({
    about:
      '`KubectlTokenLoader`: a command for a POSIX shell. `$name$` is replaced by a value, quoted for its place, and `\\$` by a dollar.',
  }),
  kubectlWinUsage: text({ about: '`KubectlTokenLoader`: the same for PowerShell.' }),
  oulogin: text({ about: '`KubectlTokenLoader`: a text about a login plug-in.' }),
  k8sCaCertName: text({
    about:
      '`KubectlTokenLoader`: the certificate of the API server’s authority, by its name in the `keys/` folder or a secret.',
    reference: 'key',
    absentReference: 'warning',
  }),
  unisonCaCertName: text({
    about: '`KubectlTokenLoader`: the certificate of the authority of this host.',
    reference: 'key',
    absentReference: 'warning',
  }),
  k8sURL: text({ about: '`KubectlTokenLoader`: the address of the API server; with it there is a `kubeconfig`.' }),
  k8sClusterName: text({
    about: '`KubectlTokenLoader`: the name of the cluster in the kubeconfig.',
    fallback: 'kubernetes',
  }),
  attributes: list({ about: '`AttributeToken`: the attributes that are shown.', requirement: 'for `AttributeToken`' }),
  attributeName: text({
    about:
      '`TOTPToken`, `LoadToken`: the attribute that holds the key (Base32, or a whole `otpauth:` address) or the password.',
    requirement: 'for `TOTPToken`, `LoadToken`',
  }),
  issuer: text({
    about:
      '`StsToken`: the issuer of an endpoint of the token service (`sts.endpoints`), which decides about the bearer token of the request, signs and audits.',
    requirement: 'for `StsToken`',
  }),
  audience: text({ about: '`StsToken`: the audience of that endpoint.', requirement: 'for `StsToken`' }),
  keyName: ofEndpoint,
  minutesTTL: ofEndpoint,
  additionalClaims: list({ about: '`StsToken`: not used, since the endpoint says it. `check` says so.' }),
  expiresSeconds: text({ about: '`StsToken`: not used.' }),
  minAlive: text({ about: '`StsToken`: not used.' }),
  encryptionKey: text({
    about:
      'Not used, and `check` warns about it: the attribute contains the value itself. Values that OpenUnison encrypted cannot be read.',
  }),
  ...themeParameters(),
  headerTitle: text({ about: "The portal's title.", fallback: 'Gatehouse' }),
}

type Given = ParsedParameters<typeof tokenParameters>

interface TokenSettings {
  readonly displayNameAttribute: string
  readonly kind: string
  readonly config: TokenConfig
  open(host: PortalHost): TokenLoader
}

const loaders = ['KubectlTokenLoader', 'AttributeToken', 'TOTPToken', 'LoadToken', 'StsToken'] as const
type LoaderName = (typeof loaders)[number]

const predecessors: Readonly<Record<string, LoaderName>> = {
  'com.tremolosecurity.scalejs.KubectlTokenLoader': 'KubectlTokenLoader',
  'com.tremolosecurity.scalejs.token.sdk.AttributeToken': 'AttributeToken',
  'com.tremolosecurity.scalejs.token.totp.TOTPToken': 'TOTPToken',
  'com.tremolosecurity.scalejs.token.password.LoadToken': 'LoadToken',
  'com.tremolosecurity.scalejs.token.sts.StsToken': 'StsToken',
}

function readTokenSettings(params: Params, issues: Issues, context: ParseContext): TokenSettings {
  const given = readParameters(tokenParameters, params, issues, context)
  const kind = loaderOf(given.tokenClassName, params, issues)
  if (given.encryptionKey !== undefined) {
    issues.warning(params.pathOf('encryptionKey'), '"encryptionKey" is not used: the attribute holds the value itself')
  }
  const open = kind === undefined ? () => attributeLoader([]) : loader(kind, given, params, issues, context)
  const qrCodeAttribute = given.qrCodeAttribute ?? (kind === 'TOTPToken' ? totpKey : undefined)
  return {
    displayNameAttribute: given.displayNameAttribute,
    kind: kind ?? '',
    config: configOf(given, qrCodeAttribute),
    open,
  }
}

function loaderOf(written: string, params: Params, issues: Issues): LoaderName | undefined {
  if (written === '') return undefined
  const found = loaders.find((name) => name === written) ?? new Map(Object.entries(predecessors)).get(written)
  if (found !== undefined) return found
  const hint = `no token loader "${written}"${suggestion(written, loaders)}`
  issues.error(params.pathOf('tokenClassName'), `"tokenClassName": ${hint}`)
  return undefined
}

function loader(
  kind: LoaderName,
  given: Given,
  params: Params,
  issues: Issues,
  context: ParseContext,
): TokenSettings['open'] {
  const required = (name: 'attributeName' | 'issuer' | 'audience'): string => {
    const value = given[name]
    if (value === undefined) issues.error(params.pathOf(name), `parameter "${name}" is required for ${kind}`)
    return value ?? ''
  }
  switch (kind) {
    case 'AttributeToken': {
      if (given.attributes.length === 0) {
        issues.error(params.pathOf('attributes'), 'parameter "attributes" is required for AttributeToken')
      }
      return () => attributeLoader(given.attributes)
    }
    case 'TOTPToken': {
      const name = required('attributeName')
      return () => totpLoader(name, given.uidAttributeName, given.headerTitle)
    }
    case 'LoadToken': {
      const name = required('attributeName')
      return () => passwordLoader(name)
    }
    case 'StsToken': {
      const endpoint = { issuer: required('issuer').replace(/\/$/, ''), audience: required('audience') }
      context.refer('endpoint of the token service', endpointName(endpoint), params.pathOf('issuer'))
      for (const name of ['keyName', 'minutesTTL', 'additionalClaims'] as const) {
        if (params.values(name).length === 0) continue
        issues.warning(params.pathOf(name), `"${name}" is not used: the endpoint of the token service says it`)
      }
      return (host) => stsLoader(endpoint, host)
    }
    case 'KubectlTokenLoader': {
      const settings = kubectlSettings(given, params, issues, context)
      return (host) => kubectlLoader(settings, host)
    }
  }
}

function kubectlSettings(given: Given, params: Params, issues: Issues, context: ParseContext): KubectlSettings {
  const { idpName: idp, trustName: trust, k8sURL: server } = given
  if ((idp === undefined) !== (trust === undefined)) {
    issues.error(params.pathOf(idp === undefined ? 'idpName' : 'trustName'), '"idpName" and "trustName" go together')
  }
  if (idp !== undefined && trust !== undefined) {
    context.refer('trust of an identity provider', `${idp} ${trust}`, params.pathOf('trustName'))
  }
  if (server !== undefined && !/^https?:/.test(URL.parse(server)?.protocol ?? '')) {
    issues.error(params.pathOf('k8sURL'), `"k8sURL": must be a web address, not "${server}"`)
  }
  return {
    from: idp === undefined || trust === undefined ? undefined : { idp, trust },
    renews: given.renewTokens,
    uidAttribute: given.uidAttributeName,
    usage: given.kubectlUsage,
    command: readCommand('kubectlTemplate', given.kubectlTemplate, 'posix', params, issues),
    windowsCommand: readCommand('kubectlWinUsage', given.kubectlWinUsage, 'powershell', params, issues),
    loginPlugin: given.oulogin,
    clusterCertificate: given.k8sCaCertName,
    ownCertificate: given.unisonCaCertName,
    server,
    cluster: given.k8sClusterName,
  }
}

function readCommand(
  name: string,
  source: string | undefined,
  shell: Shell,
  params: Params,
  issues: Issues,
): ShellTemplate | undefined {
  if (source === undefined) return undefined
  try {
    const template = parseShellTemplate(source, shell)
    for (const used of template.names) {
      if (commandValues.some((known) => known === used)) continue
      issues.error(params.pathOf(name), `"${name}": there is no value "$${used}$"${suggestion(used, commandValues)}`)
    }
    return template
  } catch (error) {
    issues.error(params.pathOf(name), `"${name}": ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

const configOf = (given: Given, qrCodeAttribute: string | undefined): TokenConfig =>
  wireForm(schemas.tokenConfig, {
    ...given,
    frontPage: { title: given['frontPage.title'], text: given['frontPage.text'] },
    qrCodeAttribute,
  })

/** No cache may store tokens. */
const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', pragma: 'no-cache' }

const tokenErrors: ErrorFormat = ({ publicText, code }, requestId) => ({
  headers,
  body: jsonBody({ errors: [publicText], code, requestId }),
})

/** The tokens of a user's token page: GET reads them, POST renews them. */
export default defineFilter<TokenSettings>({
  className: 'filters.TokenApi',
  aliases: ['com.tremolosecurity.scalejs.token.ws.ScaleToken'],
  parameters: tokenParameters,
  answers: true,
  errors: tokenErrors,
  parse: readTokenSettings,
  summarize: ({ kind }) => [{ label: 'tokens', value: kind }],
  api: () =>
    tokenApiDescription.served(placeBelow('/token'), { formats: ['openapi', 'swagger'], users: tokenApiDescription }),
  create: (settings, host: PortalHost) => {
    const parts: TokenParts = { settings, loader: settings.open(host) }
    return { handle: async (exchange) => tokenApiDescription.answer(parts, exchange, pathBelow('/token', exchange)) }
  },
})

interface TokenParts {
  readonly settings: TokenSettings
  readonly loader: TokenLoader
}

async function renewTokens({ settings, loader }: TokenParts, exchange: Exchange): Promise<GatewayResponse> {
  if (loader.renew === undefined) throw methodNotAllowed(exchange.request.method, ['GET, HEAD'])
  return json(user(exchange, settings, await loader.renew(exchange)))
}

const user = ({ subject }: Exchange, { displayNameAttribute }: TokenSettings, loaded: LoadedTokens): TokenUser => ({
  displayName: subject.attributes.first(displayNameAttribute) ?? 'Unknown',
  ...loaded,
})

const json = (body: unknown): GatewayResponse => ({ status: 200, headers, body: jsonBody(body) })

/** Everything below `/token`. */
export const tokenApiDescription = new ServedApi<TokenParts>({
  title: 'Token API',
  version: '1.0.0',
  answers: {
    TokenConfig: schemas.tokenConfig,
    TokenUser: schemas.tokenUser,
    TokenState: schemas.tokenState,
    TokenErrors: schemas.tokenErrors,
  },
  bodies: {},
  failure: { description: 'What is wrong', schema: 'TokenErrors' },
  documentsAt: placeBelow('/token'),
  operations: {
    getConfig: {
      route: 'GET /config',
      summary: 'What the token page needs to know',
      answer: 'TokenConfig',
      handle: async ({ settings }) => json(settings.config),
    },
    getTokens: {
      route: 'GET /user',
      summary: 'The tokens of the session, which stay as they are; new ones for a caller without a session',
      answer: 'TokenUser',
      handle: async ({ settings, loader }, exchange) => json(user(exchange, settings, await loader.load(exchange))),
    },
    renewTokens: {
      route: 'POST /user',
      summary: 'Makes new tokens within the session, where that is configured',
      answer: 'TokenUser',
      failures: { '403': 'New tokens require logging out and in' },
      handle: renewTokens,
    },
  },
})

/** A token of the token service for the workload whose token authenticated the request. The endpoint decides and audits. */
function stsLoader(name: EndpointName, { tokens }: Pick<PortalHost, 'tokens'>): TokenLoader {
  const endpoint = tokens?.endpointOf(name)
  if (tokens === undefined || endpoint === undefined) {
    throw new Error(
      `the token service has no endpoint with the issuer "${name.issuer}" and audience "${name.audience}"`,
    )
  }
  return {
    load: async ({ request }) => {
      const { token, expires } = await tokens.exchange({
        endpoint,
        requestId: request.id,
        remoteAddress: request.remoteAddress,
        subjectToken: async () => {
          const bearer = readBearer(request.headers)
          if (bearer.kind === 'token') return bearer.token
          throw new GatewayError('AUTH_REQUIRED', 'no bearer token was sent', { keyword: 'invalid_request' })
        },
      })
      return { token: { jwt: token, expires: expires.toISOString() } }
    },
  }
}
