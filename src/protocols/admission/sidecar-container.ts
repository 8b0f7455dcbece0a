import {
  credentialName,
  identityFolder,
  identityVolume,
  readyFile,
  sidecarName,
  targetsVariable,
  tokenFileOf,
  tokenFolder,
  tokenVolume,
  trustFile,
} from '#protocols/admission/injector-names.ts'
import { greaterQuantity, type InjectorSettings } from '#protocols/admission/injector-settings.ts'
import type { Container, Pod, Volume } from '#protocols/admission/pod.ts'
import type { PodWishes } from '#protocols/admission/pod-wishes.ts'
import { escapeVariables } from '#protocols/admission/variable-escape.ts'

/** Who the sidecar is where the pod does not say; nobody in any image. */
const defaultUser = 65532
const startSeconds = 120

/** The container that keeps the pod's tokens fresh. It passes the `restricted` level of pod security. */
export function sidecarContainer(pod: Pod, wishes: PodWishes, settings: InjectorSettings): Container {
  const user = wishes.user ?? sharedUser(pod) ?? defaultUser
  const resources = { ...settings.resources, ...wishes.resources }
  const trusts = wishes.endpoints.some(({ endpoint }) => endpoint.explicitTrust)
  const variables = {
    [targetsVariable]: targetLines(wishes, settings),
    STS_FILE_MODE: fileMode(pod, user, settings),
    STS_READY_FILE: readyFile,
    ...(trusts ? { STS_TRUST_FILE: trustFile } : {}),
    ...(trusts && settings.certificates !== undefined ? { STS_CERTIFICATES: settings.certificates } : {}),
  }
  return {
    name: sidecarName,
    image: settings.image,
    imagePullPolicy: settings.imagePullPolicy,
    command: ['/bin/sh', '-c'],
    args: [escapeVariables(settings.script), sidecarName],
    env: Object.entries(variables).map(([name, value]) => ({ name, value: escapeVariables(value) })),
    resources: {
      requests: { cpu: resources.cpuRequest, memory: resources.memoryRequest },
      limits: {
        cpu: greaterQuantity(resources.cpuLimit, resources.cpuRequest),
        memory: greaterQuantity(resources.memoryLimit, resources.memoryRequest),
      },
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: user,
      ...(wishes.group === undefined ? {} : { runAsGroup: wishes.group }),
      seccompProfile: { type: 'RuntimeDefault' },
    },
    startupProbe: {
      exec: { command: ['/bin/sh', '-c', `test -e ${readyFile}`] },
      periodSeconds: 1,
      timeoutSeconds: 5,
      failureThreshold: startSeconds,
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: tokenVolume, mountPath: tokenFolder },
      { name: identityVolume, mountPath: identityFolder, readOnly: true },
    ],
    ...(settings.nativeSidecars ? { restartPolicy: 'Always' } : {}),
  }
}

export const tokenVolumeOf = (): Volume => ({ name: tokenVolume, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } })

/** The sidecar's own credential, with the token service's audience, and the ConfigMap of certificates if there is one. */
export function identityVolumeOf(wishes: PodWishes, settings: InjectorSettings): Volume {
  const audiences = new Set(wishes.endpoints.map(({ endpoint }) => endpoint.incomingAudience))
  const trusts = wishes.endpoints.some(({ endpoint }) => endpoint.explicitTrust)
  const trust = { name: settings.trustConfigMap, items: [{ key: 'ca.crt', path: 'trust/ca.crt' }], optional: true }
  return {
    name: identityVolume,
    projected: {
      defaultMode: 0o444,
      sources: [
        ...Array.from(audiences, (audience) => ({
          serviceAccountToken: {
            audience,
            expirationSeconds: settings.credentialSeconds,
            path: credentialName(audience),
          },
        })),
        ...(trusts ? [{ configMap: trust }] : []),
      ],
    },
  }
}

/** Address, token file, credential, and what the token's audience must be, as JSON has it. */
function targetLines({ endpoints }: PodWishes, { tokenService }: InjectorSettings): string {
  return endpoints
    .map(({ endpoint }) =>
      [
        `${tokenService}${endpoint.path}/token`,
        tokenFileOf(endpoint.name),
        `${identityFolder}/${credentialName(endpoint.incomingAudience)}`,
        JSON.stringify(endpoint.audience),
      ].join(' '),
    )
    .join('\n')
}

/** Only the user or the group that the containers have for sure; else everyone in the pod, which is all who can see it. */
function fileMode(pod: Pod, user: number, { fileMode: mode }: InjectorSettings): string {
  if (mode !== 'auto') return mode
  if (typeof pod.spec.securityContext?.fsGroup === 'number') return '0440'
  return sharedUser(pod) === user ? '0400' : '0444'
}

/** The user that all containers run as, if they say so and it is not root. */
function sharedUser(pod: Pod): number | undefined {
  const containers = [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]
  const users = new Set(
    containers
      .filter(({ name }) => name !== sidecarName)
      .map(({ securityContext }) => securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser ?? 0),
  )
  const [user = 0] = users
  return users.size === 1 && user !== 0 ? user : undefined
}
