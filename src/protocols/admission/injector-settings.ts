/** An endpoint of the token service, as far as pods are concerned. */
export interface InjectedEndpoint {
  readonly name: string
  /** Below the token service's address. */
  readonly path: string
  /** Of the tokens it issues. */
  readonly audience: string
  /** Of the service-account tokens it takes. */
  readonly incomingAudience: string
  /** A label's suffix after `tremolo.io/`, or a whole label name. */
  readonly label: string
  /** Gets the path of the token file. */
  readonly tokenVariable: string
  /** Gets the value of the pod's annotation; pods need no annotation where it is absent. */
  readonly valueVariable?: string | undefined
  /** The service's certificate is not signed by a public authority. */
  readonly explicitTrust: boolean
}

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

/** What Kubernetes takes for an amount of CPU or memory, short of exponents. */
export const isQuantity = (text: string): boolean => /^\d{1,9}(?:\.\d{1,3})?(?:m|k|Ki|M|Mi|G|Gi)?$/.test(text)
