import type { ConfigDocument } from '#config/context/config-document.ts'
import type { Path } from '#kernel/issues.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'

/** The values of `#[NAME]` that a document of OpenUnison has: its `OpenUnison` object, or the values of its charts. */
export interface OpenUnisonValues {
  readonly values: ReadonlyMap<string, { readonly text: string; readonly path: Path }>
  /** Values that are the keys of a secret. */
  readonly secrets: { readonly secretName: string; readonly names: readonly string[] }
  /** The parts that have no meaning here, such as images. */
  readonly unused: readonly string[]
}

export const openUnisonKind = 'OpenUnison'
const chartSecret = 'orchestra-secrets-source'

/** Undefined if the document is neither. */
export function readOpenUnisonValues(document: ConfigDocument, top: JsonObject): OpenUnisonValues | undefined {
  if (top['kind'] === openUnisonKind) return ofObject(document, part(top['spec']))
  return isChartValues(top) ? ofChart(document, top) : undefined
}

/** The values of a chart of OpenUnison, unlike other values documents, are blocks. */
const isChartValues = (top: JsonObject): boolean =>
  isJsonObject(top['openunison']) || part(top['network'])['openunison_host'] !== undefined

const usedFields = new Set(['hosts', 'non_secret_data', 'secret_data', 'source_secret'])

function ofObject(document: ConfigDocument, spec: JsonObject): OpenUnisonValues {
  const values = new Values(document)
  for (const [i, host] of items(spec['hosts']).entries()) {
    for (const [j, name] of items(part(host)['names']).entries()) {
      values.add(part(name)['env_var'], ['spec', 'hosts', i, 'names', j, 'name'])
    }
  }
  for (const [i, entry] of items(spec['non_secret_data']).entries()) {
    values.add(part(entry)['name'], ['spec', 'non_secret_data', i, 'value'])
  }
  const { source_secret: secretName } = spec
  return {
    values: values.withDefaults(),
    secrets: {
      secretName: typeof secretName === 'string' ? secretName : chartSecret,
      names: texts(spec['secret_data']),
    },
    unused: Object.keys(spec).filter((name) => !usedFields.has(name)),
  }
}

/** `#[NAME]`, and the place of its value in the values of the charts. */
const chartPlaces: Readonly<Record<string, readonly string[]>> = {
  OU_HOST: ['network', 'openunison_host'],
  K8S_DASHBOARD_HOST: ['network', 'dashboard_host'],
  K8S_API_HOST: ['network', 'api_server_host'],
  K8S_URL: ['network', 'k8s_url'],
  SESSION_INACTIVITY_TIMEOUT_SECONDS: ['network', 'session_inactivity_timeout_seconds'],
  K8S_DASHBOARD_NAMESPACE: ['dashboard', 'namespace'],
  K8S_DASHBOARD_SERVICE: ['dashboard', 'service_name'],
  K8S_CLUSTER_NAME: ['k8s_cluster_name'],
  K8S_IMPERSONATION: ['enable_impersonation'],
  PROMETHEUS_SERVICE_ACCOUNT: ['monitoring', 'prometheus_service_account'],
  OPENUNISON_PROVISIONING_ENABLED: ['openunison', 'enable_provisioning'],
  OU_HIBERNATE_DIALECT: ['database', 'hibernate_dialect'],
  OU_QUARTZ_DIALECT: ['database', 'quartz_dialect'],
  OU_JDBC_DRIVER: ['database', 'driver'],
  OU_JDBC_URL: ['database', 'url'],
  OU_JDBC_USER: ['database', 'user'],
  OU_JDBC_VALIDATION: ['database', 'validation'],
  'openunison.maxcons': ['database', 'maxcons'],
  'openunison.maxidlecons': ['database', 'maxidlecons'],
  SMTP_HOST: ['smtp', 'host'],
  SMTP_PORT: ['smtp', 'port'],
  SMTP_USER: ['smtp', 'user'],
  SMTP_FROM: ['smtp', 'from'],
  SMTP_TLS: ['smtp', 'tls'],
  'openunison.static-secret.suffix': ['openunison', 'secret_ext'],
}

const chartSecrets = ['AD_BIND_PASSWORD', 'K8S_DB_SECRET', 'SMTP_PASSWORD', 'OU_JDBC_PASSWORD']

function ofChart(document: ConfigDocument, top: JsonObject): OpenUnisonValues {
  const values = new Values(document)
  const openunison = part(top['openunison'])
  for (const [name, path] of Object.entries(chartPlaces)) values.add(name, path)
  if (top['enable_impersonation'] === true) values.add('K8S_URL', ['network', 'api_server_host'], 'https://')
  for (const name of Object.keys(part(openunison['non_secret_data']))) {
    values.add(name, ['openunison', 'non_secret_data', name])
  }
  const read = new Set(Object.values(chartPlaces).map(([block]) => block))
  return {
    values: values.withDefaults(),
    secrets: { secretName: chartSecret, names: [...chartSecrets, ...texts(openunison['secrets'])] },
    unused: Object.entries(top).flatMap(([name, value]) =>
      name === 'sts' || read.has(name) || typeof value !== 'object' || value === null ? [] : [name],
    ),
  }
}

class Values {
  readonly #document: ConfigDocument
  readonly #values = new Map<string, { readonly text: string; readonly path: Path }>()

  constructor(document: ConfigDocument) {
    this.#document = document
  }

  /** The scalar at that place, if there is one. */
  add(name: unknown, path: Path, prefix = ''): void {
    const text = this.#document.yaml.scalarText(path)
    if (typeof name === 'string' && text !== undefined) this.#values.set(name, { text: `${prefix}${text}`, path })
  }

  /** The charts leave this value out where it is empty, and their objects use it in any case. */
  withDefaults(): ReadonlyMap<string, { readonly text: string; readonly path: Path }> {
    const suffix = 'openunison.static-secret.suffix'
    if (!this.#values.has(suffix)) this.#values.set(suffix, { text: '', path: [] })
    return this.#values
  }
}

const part = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})
const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const texts = (value: unknown): string[] => items(value).filter((item) => typeof item === 'string')
