import { defineTarget } from '#sdk/target.ts'
import { parameters } from './parameter-table.ts'
import type { WebhookConfig } from './webhook-config.ts'
import { parseWebhook } from './webhook-parameters.ts'

export default defineTarget<WebhookConfig>({
  className: 'targets.Webhook',
  parameters,
  parse: parseWebhook,
  /** Loaded where there is such a target: a gateway without one is smaller and starts sooner. */
  create: async (config, host) => (await import('./webhook-target.ts')).openWebhookTarget(config, host),
})
