/** How a cluster's API server is reached. Files are absolute paths. */
export type KubernetesConnection =
  | {
      readonly kind: 'address'
      readonly url: URL
      readonly token?: string | undefined
      /** Read again whenever it changes, as the kubelet replaces it. */
      readonly tokenFile?: string | undefined
      /** PEM text of the certificate authority; the system's own when neither is given. */
      readonly authority?: string | undefined
      readonly authorityFile?: string | undefined
    }
  | { readonly kind: 'kubeconfig'; readonly file: string; readonly context?: string | undefined }
  | { readonly kind: 'in-cluster' }

const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Where the kubelet puts a pod's own token. */
export const podTokenFile = `${accountFolder}/token`
/** Where the kubelet puts the cluster's certificate authority. */
export const podAuthorityFile = `${accountFolder}/ca.crt`

/** The connection of a process that runs in a pod. Throws a plain Error outside of a cluster. */
export function inClusterConnection(
  environment: Readonly<Record<string, string | undefined>>,
): Extract<KubernetesConnection, { kind: 'address' }> {
  const host = environment['KUBERNETES_SERVICE_HOST'] ?? ''
  const port = environment['KUBERNETES_SERVICE_PORT'] ?? '443'
  const address = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  if (host === '' || !URL.canParse(address)) {
    throw new Error(
      'KUBERNETES_SERVICE_HOST is not set: this process does not run in a cluster, so it needs a kubeconfig',
    )
  }
  return { kind: 'address', url: new URL(address), tokenFile: podTokenFile, authorityFile: podAuthorityFile }
}
