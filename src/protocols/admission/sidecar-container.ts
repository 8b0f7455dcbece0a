import {
  credentialName,
  fileOf,
  greaterQuantity,
  type InjectorSettings,
  identityFolder,
  identityVolume,
  readyFile,
  sidecarName,
  targetsVariable,
  tokenFileOf,
  tokenFolder,
  tokenVolume,
  trustFile,
} from '#protocols/admission/injector-settings.ts'
import type { Container, Pod, Volume } from '#protocols/admission/pod.ts'
import type { PodRequest } from '#protocols/admission/pod-request.ts'

/** The sidecar's user and group if the pod names none; no image has them. */
const defaultUser = 65532
const defaultGroup = 65532
const startSeconds = 120
/** The timeout of a probe, below the margin that the sidecar keeps before a token expires. */
const readinessSeconds = 5

/**
 * Succeeds while all tokens are valid, even if the sidecar no longer runs. Otherwise prints what is wrong, which
 * Kubernetes shows in an event of the pod. Compares uptimes, since the node's date may be wrong.
 */
export const probeScript = (file: string): string =>
  [
    'read -r now _ <"${STS_UPTIME_FILE:-/proc/uptime}" || now=$(date +%s)',
    `deadline=0 reason="no token yet"; read -r deadline reason <${file}`,
    '[ "${now%%.*}" -lt "$deadline" ] || { echo "$reason"; exit 1; }',
  ].join('\n')

/** The container that keeps the pod's tokens fresh. It passes the `restricted` level of pod security. */
export function sidecarContainer(pod: Pod, request: PodRequest, settings: InjectorSettings): Container {
  const user = request.user ?? sharedId(pod, 'runAsUser') ?? defaultUser
  const probe = { command: ['/bin/sh', '-c', probeScript(readyFile)] }
  const resources = { ...settings.resources, ...request.resources }
  const trusts = request.endpoints.some(({ endpoint }) => endpoint.explicitTrust)
  const files = fileLines(request)
  const variables = {
    [targetsVariable]: targetLines(request, settings),
    ...(files === '' ? {} : { STS_FILES: files }),
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
      runAsGroup: request.group ?? sharedId(pod, 'runAsGroup') ?? defaultGroup,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    startupProbe: {
      exec: probe,
      periodSeconds: 1,
      timeoutSeconds: 5,
      failureThreshold: startSeconds,
    },
    ...(settings.readinessProbe
      ? { readinessProbe: { exec: probe, periodSeconds: readinessSeconds, timeoutSeconds: 3, failureThreshold: 1 } }
      : {}),
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
export function identityVolumeOf(request: PodRequest, settings: InjectorSettings): Volume {
  const audiences = new Set(request.endpoints.map(({ endpoint }) => endpoint.incomingAudience))
  const trusts = request.endpoints.some(({ endpoint }) => endpoint.explicitTrust)
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

/** URL, token file, credential, and the expected audience of the token, as JSON. */
function targetLines({ endpoints }: PodRequest, { tokenService }: InjectorSettings): string {
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

/** Path and content, which has no line breaks, since JSON needs none. */
function fileLines({ endpoints }: PodRequest): string {
  return endpoints
    .flatMap(({ endpoint: { name, file }, values }) =>
      file?.needs.every((setting) => values.has(setting))
        ? [`${fileOf(name, file.name)} ${JSON.stringify(file.content((setting) => values.get(setting)))}`]
        : [],
    )
    .join('\n')
}

/** Only the user or the group that all containers have; otherwise everyone in the pod. */
function fileMode(pod: Pod, user: number, { fileMode: mode }: InjectorSettings): string {
  if (mode !== 'auto') return mode
  if (typeof pod.spec.securityContext?.fsGroup === 'number') return '0440'
  return sharedId(pod, 'runAsUser') === user ? '0400' : '0444'
}

/** The user or group that all containers run as, if they say so and it is not root. */
function sharedId(pod: Pod, field: 'runAsUser' | 'runAsGroup'): number | undefined {
  const containers = [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]
  const ids = new Set(
    containers
      .filter(({ name }) => name !== sidecarName)
      .map(({ securityContext }) => securityContext?.[field] ?? pod.spec.securityContext?.[field] ?? 0),
  )
  const [id = 0] = ids
  return ids.size === 1 && id !== 0 ? id : undefined
}

/**
 * The text escaped for `env`, `command` and `args`, where Kubernetes replaces `$(NAME)` and reads `$$` as one
 * dollar sign.
 */
export const escapeVariables = (text: string): string => text.replaceAll('$', '$$$$')
