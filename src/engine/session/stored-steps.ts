import type { ChainStep } from '#engine/pipeline/chain.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'

export const storeSteps = (steps: readonly ChainStep[]): JsonValue[] =>
  steps.map(({ chain, link, name }) => ({ chain, link, name }))

/** None where there is nothing, as before there were any; undefined when the data is no steps. */
export function restoreSteps(stored: JsonValue | undefined): readonly ChainStep[] | undefined {
  if (stored === undefined) return []
  if (!Array.isArray(stored)) return undefined
  const steps = (stored as readonly JsonValue[]).map((step) => {
    if (!isJsonObject(step)) return undefined
    const { chain, link, name } = step
    const isStep = typeof chain === 'string' && typeof link === 'number' && typeof name === 'string'
    return isStep ? { chain, link, name } : undefined
  })
  return steps.every((step) => step !== undefined) ? steps : undefined
}
