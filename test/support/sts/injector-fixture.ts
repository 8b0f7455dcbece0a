import type { InjectorSettings } from '#protocols/admission/injector-settings.ts'
import type { Pod } from '#protocols/admission/pod.ts'
import type { PodEndpoint } from '#protocols/admission/pod-endpoint.ts'
import type { PodAccount } from '#protocols/admission/pod-request.ts'

export const awsEndpoint: PodEndpoint = {
  name: 'aws',
  path: '/sts/aws',
  audience: 'sts.amazonaws.com',
  incomingAudience: 'gatehouse-sts',
  label: 'aws-role',
  tokenVariable: 'AWS_WEB_IDENTITY_TOKEN_FILE',
  valueVariable: 'AWS_ROLE_ARN',
  explicitTrust: false,
  settings: [],
  variables: [],
}

export const claudeEndpoint: PodEndpoint = {
  name: 'claude',
  path: '/sts/claude',
  audience: 'https://api.anthropic.com',
  incomingAudience: 'gatehouse-sts',
  label: 'claude',
  tokenVariable: 'ANTHROPIC_IDENTITY_TOKEN_FILE',
  explicitTrust: true,
  settings: [],
  variables: [],
}

export const cartAccount: PodAccount = { namespace: 'shop', name: 'cart', cluster: 'k8s', annotations: {} }

export const roleArn = 'arn:aws:iam::111122223333:role/app'

export const injectorSettings: InjectorSettings = {
  tokenService: 'https://gatehouse.example.com',
  image: 'registry.example.com/curl@sha256:0000000000000000000000000000000000000000000000000000000000000000',
  imagePullPolicy: 'IfNotPresent',
  imagePullSecrets: [],
  script: 'echo "$STS_TARGETS" $(date)',
  resources: { cpuRequest: '5m', cpuLimit: '200m', memoryRequest: '8Mi', memoryLimit: '32Mi' },
  credentialSeconds: 3600,
  fileMode: 'auto',
  nativeSidecars: true,
  position: 'first',
  readinessProbe: true,
  skipContainers: ['istio-proxy'],
  trustConfigMap: 'ouca',
}

export interface PodParts {
  readonly labels?: Record<string, string>
  readonly annotations?: Record<string, string>
  readonly spec?: Partial<Pod['spec']>
}

/** A pod that requests a token of AWS, with one container by default. */
export function podOf({ labels, annotations, spec }: PodParts = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      generateName: 'app-',
      creationTimestamp: null,
      labels: labels ?? { 'tremolo.io/aws-role': 'true' },
      annotations: { ...(labels === undefined ? { 'tremolo.io/aws-role': roleArn } : {}), ...annotations },
    },
    spec: { containers: [{ name: 'app', image: 'app:1' }], ...spec },
  }
}
