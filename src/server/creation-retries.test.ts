import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { CreationRetries } from './creation-retries.ts'

test('an attempt logs how much is missing, and the first of it', () => {
  const logged: unknown[] = []
  const keep = (_: string, fields?: object): void => void logged.push(fields)
  const retries = new CreationRetries({ ...silentLogger, info: keep, warn: keep })
  onTestFinished(() => retries.close())
  const problems = Array.from({ length: 5000 }, (_, i) => `all.yaml:${i}:1: no host`)
  for (const isRepeated of [false, true]) retries.plan(problems, isRepeated, () => {})
  const fields = { problems: problems.slice(0, 20), count: 5000, retrySeconds: expect.any(Number) }
  expect(logged).toEqual([fields, fields])
})
