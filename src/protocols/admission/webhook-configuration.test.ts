import { expect, test } from 'vitest'
import { webhookConfiguration } from '#protocols/admission/webhook-configuration.ts'
import { isLabelName } from './pod-endpoint.ts'

const service = { namespace: 'gatehouse', name: 'gatehouse-webhook', port: 443, path: '/sts/inject' }
const options = { name: 'gatehouse-sts', client: { service }, certificates: 'PEM', ownNamespace: 'gatehouse' }

const webhook = (labels: readonly string[]): Record<string, unknown> => {
  const { webhooks } = webhookConfiguration({ ...options, labels }) as { webhooks: Record<string, unknown>[] }
  expect(webhooks.length).toBeLessThanOrEqual(1)
  return webhooks[0] ?? {}
}

test('B1, B2, B3, B4: one webhook for all endpoints, which fails closed for few pods only', () => {
  expect(webhook(['aws-role', 'claude'])).toMatchObject({
    clientConfig: { service, caBundle: Buffer.from('PEM').toString('base64') },
    failurePolicy: 'Fail',
    reinvocationPolicy: 'IfNeeded',
    sideEffects: 'NoneOnDryRun',
    timeoutSeconds: 5,
    matchPolicy: 'Equivalent',
    rules: [{ operations: ['CREATE'], resources: ['pods'] }],
    namespaceSelector: {
      matchExpressions: [{ operator: 'NotIn', values: ['kube-system', 'gatehouse'] }],
    },
    matchConditions: [
      {
        expression:
          "has(object.metadata.labels) && (('tremolo.io/aws-role' in object.metadata.labels && !(object.metadata.labels['tremolo.io/aws-role'] in ['false', 'disabled'])) || ('tremolo.io/claude' in object.metadata.labels && !(object.metadata.labels['tremolo.io/claude'] in ['false', 'disabled'])))",
      },
    ],
  })
})

test('A13: a single label also has a selector, unless it is disabled', () => {
  expect(webhook(['aws-role'])['objectSelector']).toEqual({
    matchExpressions: [
      { key: 'tremolo.io/aws-role', operator: 'Exists' },
      { key: 'tremolo.io/aws-role', operator: 'NotIn', values: ['false', 'disabled'] },
    ],
  })
})

test('without an endpoint there is no webhook, so no pod waits for one', () => {
  expect(webhook([])).toEqual({})
})

test('only label names get into the expression', () => {
  for (const label of ["x' || true || 'y", 'a b', 'UPPER.example.com/x', '', 'x/', '-x', 'x'.repeat(64)]) {
    expect({ label, taken: isLabelName(label) }).toEqual({ label, taken: false })
    expect(webhook([label])).toEqual({})
  }
  expect(isLabelName('sts.example.com/role_A.b')).toBe(true)
})

test('a webhook outside of the cluster has a URL', () => {
  const { webhooks } = webhookConfiguration({
    ...options,
    labels: ['a'],
    client: { url: 'https://gw.example.com/sts/inject' },
  }) as {
    webhooks: { clientConfig: unknown }[]
  }
  expect(webhooks[0]?.clientConfig).toMatchObject({ url: 'https://gw.example.com/sts/inject' })
})
