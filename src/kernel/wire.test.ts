import { expect, test } from 'vitest'
import * as z from 'zod'
import { wireForm } from './wire.ts'

const schema = z.object({
  at: z.string(),
  by: z.string().optional(),
  parts: z.array(z.object({ since: z.string() })).optional(),
  whole: z.object({ until: z.string(), count: z.int() }).optional(),
  open: z.unknown().optional(),
})
const time = new Date('2030-01-01T00:00:00Z')
const text = '2030-01-01T00:00:00.000Z'

test('dates become texts at any depth', () => {
  const from = { at: time, by: undefined, parts: [{ since: time }], whole: { until: time, count: 1 } }
  expect(wireForm(schema, from)).toEqual({ at: text, parts: [{ since: text }], whole: { until: text, count: 1 } })
})

test('members that the schema does not name are left out at any depth', () => {
  const secret = { secret: 'S3CR3T' }
  const from = { at: 'now', ...secret, parts: [{ since: text, ...secret }], open: { anything: [1] } }
  expect(wireForm(schema, from)).toEqual({ at: 'now', parts: [{ since: text }], open: { anything: [1] } })
})
