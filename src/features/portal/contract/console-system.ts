import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

export const replica = z.object({
  name: z.string().describe('Host, process and a unique part.'),
  version: z.string(),
  started: z.string(),
  seen: z.string().describe('When it last reported that it is alive.'),
})
export type ReplicaView = Wire<typeof replica>

export const certificate = z.object({
  subject: z.string(),
  issuer: z.string(),
  names: z.array(z.string()).describe('Host names and addresses.'),
  validFrom: z.string(),
  validTo: z.string(),
  problem: z.string().describe('Why a newer certificate is not served, or why clients reject this one.').optional(),
})
export type CertificateView = Wire<typeof certificate>

export const listener = z.object({
  name: z.enum(['public', 'metrics', 'webhook']),
  address: z.string(),
  certificate: certificate.optional(),
})

/** GET admin/system. What could not be read is absent. */
export const system = z.object({
  replica: replica.describe('The process that answers.'),
  replicas: z.array(replica).describe('Seen in the last 90 seconds.').optional(),
  node: z.string().describe('The version of Node.js.'),
  queues: z
    .object({
      runs: z.object({
        ready: z.int().describe('Due, or due later.'),
        running: z.int(),
        waiting: z.int(),
        incident: z.int(),
        oldestReadyMillis: z.number().describe('How long the run that is due longest has been due.').optional(),
      }),
      approvals: z.object({ open: z.int() }),
      mails: z.object({
        queued: z.int(),
        failed: z.int().describe('Given up.'),
        unknown: z.int().describe('Sent without an answer from the mail server.'),
        oldestMillis: z.number().optional(),
      }),
    })
    .describe('Work that waits, in the whole installation.')
    .optional(),
  listeners: z.array(listener).describe('Of the process that answers.'),
  database: z.object({ kind: z.enum(['sqlite', 'postgres']), bytes: z.int().optional() }),
  disk: z
    .object({ freeBytes: z.int(), totalBytes: z.int() })
    .describe('The file system of the data folder of the process that answers.')
    .optional(),
})
export type SystemView = Wire<typeof system>
