import { stringify } from 'yaml'

export interface KubeconfigContent {
  readonly cluster: string
  readonly server: string
  readonly user: string
  readonly issuer: string
  readonly clientId: string
  readonly idToken: string
  readonly refreshToken: string | undefined
  /** Certificates, as PEM. */
  readonly clusterCertificate: string | undefined
  readonly issuerCertificate: string | undefined
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** A whole file for kubectl. Names are values of a document that is written by a library, whatever stands in them. */
export function kubeconfig(content: KubeconfigContent): string {
  const { cluster, server, issuer, clientId, idToken, refreshToken, clusterCertificate, issuerCertificate } = content
  const user = `${content.user}@${cluster}`
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: cluster,
        cluster: {
          server,
          ...(clusterCertificate === undefined ? {} : { 'certificate-authority-data': base64(clusterCertificate) }),
        },
      },
    ],
    contexts: [{ name: cluster, context: { cluster, user } }],
    'current-context': cluster,
    users: [
      {
        name: user,
        user: {
          'auth-provider': {
            name: 'oidc',
            config: {
              'idp-issuer-url': issuer,
              'client-id': clientId,
              'id-token': idToken,
              ...(refreshToken === undefined ? {} : { 'refresh-token': refreshToken }),
              ...(issuerCertificate === undefined
                ? {}
                : { 'idp-certificate-authority-data': base64(issuerCertificate) }),
            },
          },
        },
      },
    ],
  })
}
