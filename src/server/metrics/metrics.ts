import { collectDefaultMetrics, Registry } from 'prom-client'
import { createAuditMetrics } from '#server/metrics/audit-metrics.ts'
import { createCertificateMetrics } from '#server/metrics/certificate-metrics.ts'
import { createConfigurationMetrics } from '#server/metrics/configuration-metrics.ts'
import { createConnectionMetrics } from '#server/metrics/connection-metrics.ts'
import { createDatabaseMetrics } from '#server/metrics/database-metrics.ts'
import { createDeliveryMetrics } from '#server/metrics/delivery-metrics.ts'
import { LabelBound } from '#server/metrics/label-bound.ts'
import { createPeopleMetrics } from '#server/metrics/people-metrics.ts'
import { createProcessMetrics } from '#server/metrics/process-metrics.ts'
import { createReconciliationMetrics } from '#server/metrics/reconciliation-metrics.ts'
import { createRequestMetrics } from '#server/metrics/request-metrics.ts'
import { createTokenMetrics } from '#server/metrics/token-metrics.ts'
import { createWorkflowMetrics } from '#server/metrics/workflow-metrics.ts'

/** The metrics of the process, in a separate registry so that two servers in one process do not mix. */
export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const bound = new LabelBound()
  return {
    registry,
    ...createRequestMetrics(registry, bound),
    ...createDeliveryMetrics(registry, bound),
    ...createTokenMetrics(registry, bound),
    ...createCertificateMetrics(registry),
    ...createConfigurationMetrics(registry),
    ...createProcessMetrics(registry),
    database: createDatabaseMetrics(registry),
    connections: createConnectionMetrics(registry),
    audit: createAuditMetrics(registry, bound),
    people: createPeopleMetrics(registry, bound),
    reconciliations: createReconciliationMetrics(registry, bound),
    workflows: createWorkflowMetrics(registry, bound),
  }
}

export type Metrics = ReturnType<typeof createMetrics>
export type PeopleMetrics = Metrics['people']
