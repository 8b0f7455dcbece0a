import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { SpanStart } from '#kernel/tracing.ts'
import { type EndedSpan, SpanTracer } from '#server/tracing/span-tracer.ts'
import type { Sampling } from '#server/tracing/tracing-options.ts'

const root: SpanStart = { name: 'root', kind: 'server', parent: 'none' }
const child = (name: string): SpanStart => ({ name, kind: 'internal', parent: 'current' })
const outside = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }

function tracing(sampling: Sampling = { parentBased: true, ratio: 1 }) {
  const ended: EndedSpan[] = []
  return { ended, tracer: new SpanTracer(sampling, (span) => ended.push(span)) }
}

test('spans of one trace are a tree that follows asynchronous calls', async () => {
  const { ended, tracer } = tracing()
  await tracer.span(root, async () => {
    const parts = ['a', 'b'].map((name) =>
      tracer.span(child(name), async () => {
        await delay(1)
        await tracer.span(child(`${name}1`), async () => delay(1))
      }),
    )
    await Promise.all(parts)
  })
  const named = (name: string): EndedSpan | undefined => ended.find((span) => span.name === name)
  expect(ended.map(({ name }) => name).sort()).toEqual(['a', 'a1', 'b', 'b1', 'root'])
  expect(new Set(ended.map(({ context }) => context.traceId)).size).toBe(1)
  expect(named('root')?.parentId).toBeUndefined()
  expect(named('a')?.parentId).toBe(named('root')?.context.spanId)
  expect(named('a1')?.parentId).toBe(named('a')?.context.spanId)
  expect(named('b1')?.parentId).toBe(named('b')?.context.spanId)
})

test('work outside of a trace, and detached work, makes no spans; bound work keeps its span', async () => {
  const { ended, tracer } = tracing()
  expect(tracer.span(child('poll'), () => 7)).toBe(7)
  const later = tracer.span(root, () => {
    tracer.detached(() => tracer.span(child('sweep'), () => {}))
    return tracer.bound(() => tracer.current()?.context.spanId)
  })
  expect(ended.map(({ name }) => name)).toEqual(['root'])
  expect(later()).toBe(ended[0]?.context.spanId)
  expect(tracer.current()).toBeUndefined()
})

test('a failure is marked by its code, and never by its message', async () => {
  const { ended, tracer } = tracing()
  const fails = (name: string, error: Error) =>
    expect(tracer.span({ ...root, name }, () => Promise.reject(error))).rejects.toBe(error)
  await fails('down', new GatewayError('TARGET_UNREACHABLE', 'ada@example.com'))
  await fails('refused', new GatewayError('NOT_FOUND', 'ada@example.com'))
  await fails('broken', new TypeError('ada@example.com'))
  expect(ended.map(({ name, failed, attributes }) => [name, failed, attributes.get('error.type')])).toEqual([
    ['down', true, 'TARGET_UNREACHABLE'],
    ['refused', false, 'NOT_FOUND'],
    ['broken', true, 'TypeError'],
  ])
  expect(() =>
    tracer.span(root, () => {
      throw new Error('at once')
    }),
  ).toThrow('at once')
  expect(ended).toHaveLength(4)
})

test('samples by the parent only where the sampler says so', () => {
  const recorded = (sampling: Sampling, sampled: boolean): number => {
    const { ended, tracer } = tracing(sampling)
    tracer.span({ ...root, parent: { ...outside, sampled } }, () => tracer.span(child('below'), () => {}))
    return ended.length
  }
  expect(recorded({ parentBased: true, ratio: 0 }, true)).toBe(2)
  expect(recorded({ parentBased: true, ratio: 1 }, false)).toBe(0)
  expect(recorded({ parentBased: false, ratio: 0 }, true)).toBe(0)
  expect(recorded({ parentBased: false, ratio: 1 }, false)).toBe(2)
})

test('a ratio records about that share of the traces, and whole traces', () => {
  const { ended, tracer } = tracing({ parentBased: true, ratio: 0.25 })
  for (let i = 0; i < 4000; i++) tracer.span(root, () => tracer.span(child('below'), () => {}))
  const roots = ended.filter(({ name }) => name === 'root').length
  expect(ended.length).toBe(2 * roots)
  expect(roots).toBeGreaterThan(800)
  expect(roots).toBeLessThan(1200)
})

test('attributes, texts and links are bounded', () => {
  const { ended, tracer } = tracing()
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`a${i}`, 'x'.repeat(10_000)]))
  const links = Array.from({ length: 50 }, () => ({ ...outside, sampled: true }))
  tracer.span({ ...root, attributes: many, links }, () => {})
  expect(ended[0]?.attributes.size).toBe(32)
  expect(ended[0]?.attributes.get('a0')).toHaveLength(4096)
  expect(ended[0]?.links).toHaveLength(8)
})
