import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { isLabelName, labelName } from './pod-endpoint.ts'

export interface WebhookOptions {
  /** Of the MutatingWebhookConfiguration. */
  readonly name: string
  /** Of all endpoints that have an injector. */
  readonly labels: readonly string[]
  readonly client:
    | {
        readonly service: {
          readonly namespace: string
          readonly name: string
          readonly port: number
          readonly path: string
        }
      }
    | { readonly url: string }
  /** PEM of all CAs that may have signed the webhook's certificate. */
  readonly certificates: string
  /** Never injected: Gatehouse runs there, and would wait for itself. Undefined if it runs elsewhere. */
  readonly ownNamespace: string | undefined
}

const off = ['false', 'disabled']
const timeoutSeconds = 5

/**
 * One webhook for all endpoints. Pods without any of the labels are admitted without a call, so only labelled pods
 * depend on this service: without it they would start without an identity.
 */
export function webhookConfiguration(options: WebhookOptions): JsonObject {
  const labels = [...new Set(options.labels.map(labelName))].filter(isLabelName).sort()
  const [only] = labels
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: options.name, labels: { 'app.kubernetes.io/managed-by': 'gatehouse' } },
    webhooks:
      only === undefined
        ? []
        : [
            {
              name: 'sts.gatehouse.tremolo.io',
              admissionReviewVersions: ['v1'],
              clientConfig: { ...clientOf(options.client), caBundle: base64(options.certificates) },
              rules: [
                {
                  apiGroups: [''],
                  apiVersions: ['v1'],
                  operations: ['CREATE'],
                  resources: ['pods'],
                  scope: 'Namespaced',
                },
              ],
              objectSelector: labels.length === 1 ? selectorOf(only) : {},
              matchConditions: [{ name: 'asks-for-a-token', expression: expressionOf(labels) }],
              namespaceSelector: {
                matchExpressions: [
                  {
                    key: 'kubernetes.io/metadata.name',
                    operator: 'NotIn',
                    values: [...new Set(['kube-system', options.ownNamespace ?? 'kube-system'])],
                  },
                ],
              },
              matchPolicy: 'Equivalent',
              failurePolicy: 'Fail',
              reinvocationPolicy: 'IfNeeded',
              // Events and audit entries.
              sideEffects: 'NoneOnDryRun',
              timeoutSeconds,
            },
          ],
  }
}

const selectorOf = (label: string): JsonObject => ({
  matchExpressions: [
    { key: label, operator: 'Exists' },
    { key: label, operator: 'NotIn', values: off },
  ],
})

/**
 * Selectors can't express "one of these labels", so CEL does. Label names have no characters that would end a CEL
 * text.
 */
function expressionOf(labels: readonly string[]): string {
  const wanted = labels.map(
    (label) =>
      `('${label}' in object.metadata.labels && !(object.metadata.labels['${label}'] in ['${off.join("', '")}']))`,
  )
  return `has(object.metadata.labels) && (${wanted.join(' || ')})`
}

const clientOf = (client: WebhookOptions['client']): { readonly [name: string]: JsonValue } =>
  'url' in client ? { url: client.url } : { service: { ...client.service } }

const base64 = (text: string): string => Buffer.from(text).toString('base64')
