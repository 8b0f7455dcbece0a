import type { TokenConfig } from '#contract/token.ts'
import type { Issues } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { commandValues, type KubectlSettings, kubectlLoader } from './kubectl-loader.ts'
import { parseShellTemplate, type Shell, type ShellTemplate } from './shell-template.ts'
import { attributeLoader, passwordLoader, type TokenLoader, totpKey, totpLoader } from './token-loader.ts'
import { tokenParameters } from './token-parameters.ts'

type Given = ParsedParameters<typeof tokenParameters>

export interface TokenSettings {
  readonly displayNameAttribute: string
  readonly kind: string
  readonly config: TokenConfig
  open(host: ModuleHost): TokenLoader
}

const loaders = ['KubectlTokenLoader', 'AttributeToken', 'TOTPToken', 'LoadToken'] as const
type LoaderName = (typeof loaders)[number]

const predecessors: Readonly<Record<string, LoaderName>> = {
  'com.tremolosecurity.scalejs.KubectlTokenLoader': 'KubectlTokenLoader',
  'com.tremolosecurity.scalejs.token.sdk.AttributeToken': 'AttributeToken',
  'com.tremolosecurity.scalejs.token.totp.TOTPToken': 'TOTPToken',
  'com.tremolosecurity.scalejs.token.password.LoadToken': 'LoadToken',
}

export function readTokenSettings(params: Params, issues: Issues, context: ParseContext): TokenSettings {
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
  const hint = written.endsWith('.StsToken')
    ? 'tokens of the token service are got at its own endpoints (sts.endpoints)'
    : `no token loader "${written}"${suggestion(written, loaders)}`
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
  const required = (name: 'attributeName'): string => {
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

function configOf(given: Given, qrCodeAttribute: string | undefined): TokenConfig {
  return {
    frontPage: { title: given['frontPage.title'], text: given['frontPage.text'] },
    homeURL: given.homeURL,
    logoutURL: given.logoutURL,
    ...(qrCodeAttribute === undefined ? {} : { qrCodeAttribute }),
    warnMinutesLeft: given.warnMinutesLeft,
    themePrimaryMain: given.themePrimaryMain ?? '',
    themePrimaryDark: given.themePrimaryDark ?? '',
    themePrimaryLight: given.themePrimaryLight ?? '',
    themeSecondaryMain: given.themeSecondaryMain ?? '',
    themeSecondaryDark: given.themeSecondaryDark ?? '',
    themeSecondaryLight: given.themeSecondaryLight ?? '',
    errorColor: given.errorColor ?? '',
    headerTitle: given.headerTitle,
  }
}
