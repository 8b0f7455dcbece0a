import { expect, test } from 'vitest'
import { readTraceparent, writeTraceparent } from '#kernel/tracing.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const span = '00f067aa0ba902b7'

test('reads and writes traceparent', () => {
  const context = { traceId: trace, spanId: span, sampled: true }
  expect(readTraceparent(`00-${trace}-${span}-01`)).toEqual(context)
  expect(readTraceparent(`00-${trace}-${span}-00`)).toEqual({ ...context, sampled: false })
  // Only the first flag is known.
  expect(readTraceparent(`00-${trace}-${span}-fe`)).toEqual({ ...context, sampled: false })
  expect(readTraceparent(`cc-${trace}-${span}-01-more`)).toEqual(context)
  expect(writeTraceparent(context)).toBe(`00-${trace}-${span}-01`)
  expect(writeTraceparent({ ...context, sampled: false })).toBe(`00-${trace}-${span}-00`)
})

test.each([
  undefined,
  '',
  `00-${trace}-${span}`,
  `00-${trace}-${span}-01-more`,
  `ff-${trace}-${span}-01`,
  `00-${'0'.repeat(32)}-${span}-01`,
  `00-${trace}-${'0'.repeat(16)}-01`,
  `00-${trace.toUpperCase()}-${span}-01`,
  `cc-${trace}-${span}-01-${'x'.repeat(1000)}`,
])('ignores the malformed header %s', (text) => {
  expect(readTraceparent(text)).toBeUndefined()
})
