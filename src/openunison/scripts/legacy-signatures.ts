import type { ScriptParameter } from '#openunison/scripts/runtime/script-value.ts'

/** How OpenUnison calls each function of a script, built from the gateway's arguments. */
export type LegacySignatures = Readonly<Record<string, readonly LegacyParameter[]>>

export type LegacyParameter = ScriptParameter

/** The argument at that position, unchanged. */
export const value = (from: number): LegacyParameter => ({ kind: 'value', from })

/** Of the function in a JavaScriptMapping. */
export const mappingSignatures: LegacySignatures = {
  doMapping: [
    { kind: 'user', from: 0 },
    { kind: 'value', from: 1 },
  ],
}

export const parameter = (kind: LegacyParameter['kind'], from?: number): LegacyParameter => ({
  kind,
  from,
})
