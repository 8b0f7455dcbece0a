import type { JsonValue } from '#kernel/json.ts'
import type { SecondFactorKind } from './second-factor.ts'

/** The slot in which a session records that the user proved a second factor. */
export const secondFactorSlot = 'gatehouse.second-factor'

/** The value of the slot. */
export const secondFactorProof = (kind: SecondFactorKind | 'recovery', at: Date): JsonValue => ({
  kind,
  at: at.toISOString(),
})

/** When the user proved a second factor in this session, if ever. */
export function provenAt(slot: JsonValue | undefined): Date | undefined {
  if (typeof slot !== 'object' || slot === null || Array.isArray(slot) || !('at' in slot)) return undefined
  const at = new Date(String(slot['at']))
  return Number.isNaN(at.getTime()) ? undefined : at
}
