export interface InjectorSettings {
  /** Where pods reach the token service, without a slash at the end. */
  readonly tokenService: string
  readonly image: string
  readonly imagePullPolicy: 'IfNotPresent' | 'Always' | 'Never'
  /** Secrets of the pod's namespace. */
  readonly imagePullSecrets: readonly string[]
  /** The shell script that the sidecar runs. */
  readonly script: string
  readonly resources: SidecarResources
  /** Life of the sidecar's own credential. */
  readonly credentialSeconds: number
  /** `auto`: as narrow as the pod's users and groups allow. */
  readonly fileMode: 'auto' | '0440' | '0444'
  /** The cluster knows init containers that keep running (Kubernetes 1.29). */
  readonly nativeSidecars: boolean
  readonly position: 'first' | 'last'
  /** The pod is Ready only while all its tokens are valid. */
  readonly readinessProbe: boolean
  /** Containers that never get a token, unless a pod includes them by name. */
  readonly skipContainers: readonly string[]
  /** PEM, for endpoints with explicit trust. */
  readonly certificates?: string | undefined
  /** Of the pod's namespace, with the key `ca.crt`; it may be absent. */
  readonly trustConfigMap: string
}

export interface SidecarResources {
  readonly cpuRequest: string
  readonly cpuLimit: string
  readonly memoryRequest: string
  readonly memoryLimit: string
}

const quantity = /^(\d{1,9}(?:\.\d{1,3})?)(m|k|Ki|M|Mi|G|Gi)?$/
const units: Readonly<Record<string, number>> = {
  m: 1e-3,
  k: 1e3,
  Ki: 2 ** 10,
  M: 1e6,
  Mi: 2 ** 20,
  G: 1e9,
  Gi: 2 ** 30,
}

/** What Kubernetes takes for an amount of CPU or memory, short of exponents. */
export const isQuantity = (text: string): boolean => quantity.test(text)

/** The greater one of two amounts, in its own words; the first when they are equal. */
export function greaterQuantity(a: string, b: string): string {
  return amountOf(b) > amountOf(a) ? b : a
}

function amountOf(text: string): number {
  const [, digits = '0', unit = ''] = quantity.exec(text) ?? []
  return Number(digits) * (units[unit] ?? 1)
}
