import { readAddress } from '#database/databases.ts'
import { parseHostPort } from '#kernel/address.ts'
import { TrustedProxies } from '#requests/listener/trusted-proxies.ts'
import { checkOptions, type Values, WrongUsage } from './command-line.ts'

/** Every command has it whose output is for people and for programs. */
export const outputOption = {
  output: {
    value: 'FORMAT',
    default: 'text',
    choices: ['text', 'json'],
    about: 'text, or json: one document on standard output',
  },
} as const

/** The options of commands that work on the database of a gateway. */
export const databaseOptions = {
  data: { value: 'DIR', default: '.gatehouse', about: 'Data folder of the gateway' },
  database: {
    value: 'URL',
    about: 'PostgreSQL database, instead of the one in the data folder (default $GATEHOUSE_DATABASE)',
  },
} as const

/** For commands that read the directory only if a rule needs it. */
export const directoryOptions = {
  data: { value: 'DIR', about: 'Data folder of the gateway, for rules that read the directory' },
  database: { value: 'URL', about: 'PostgreSQL database, likewise (default $GATEHOUSE_DATABASE)' },
} as const

export const configOption = {
  config: { value: 'SOURCE', about: 'Configuration folder, or kubernetes:NAMESPACE' },
} as const

export const secretsOption = {
  secrets: {
    value: 'DIR',
    about: 'Folder of secret files, NAME/KEY (default secrets/ in the configuration folder)',
  },
} as const

/** The options that `check --production` also takes. */
export const listenOptions = {
  listen: { value: 'HOST:PORT', default: '127.0.0.1:8080', about: 'Address of the public listener' },
  metrics: {
    value: 'HOST:PORT',
    default: '127.0.0.1:8081',
    about: 'Address of metrics and health checks, or "off"',
  },
  'tls-cert': {
    value: 'FILE',
    about: 'Certificate chain, PEM; requires --tls-key. Both are reloaded when they change',
  },
  'tls-key': { value: 'FILE', about: 'Private key of the certificate, PEM' },
  'trusted-proxy': {
    value: 'CIDR',
    multiple: true,
    about: 'Proxy whose X-Forwarded-* headers to trust; can be repeated',
  },
} as const

export const sourceOptions = {
  config: { value: 'SOURCE', about: 'Configuration folder, or kubernetes:NAMESPACE[/CONFIGMAP]' },
  kubeconfig: {
    value: 'FILE',
    about: "How to reach the cluster (default $KUBECONFIG, otherwise the pod's service account)",
  },
  ...secretsOption,
} as const

/** Throws WrongUsage. */
export function checkListenOptions(values: Values<typeof listenOptions>, databaseUrl: string | undefined): void {
  if ((values['tls-cert'] === undefined) !== (values['tls-key'] === undefined)) {
    throw new WrongUsage('--tls-cert and --tls-key require each other')
  }
  checkOptions({
    listen: () => parseHostPort(values.listen),
    metrics: () => values.metrics === 'off' || parseHostPort(values.metrics),
    database: () => databaseUrl === undefined || readAddress(databaseUrl),
    'trusted-proxy': () => new TrustedProxies(values['trusted-proxy']),
  })
}
