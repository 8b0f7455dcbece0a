import { useEffect, useState } from 'react'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import type { Matches } from './field-rules.ts'

const unknown: Matches = () => undefined

/** Evaluates patterns with the gateway's library (RE2), which is loaded only for a form with patterns. */
export function usePatterns(fields: readonly FormAttributeView[]): Matches {
  const [matches, setMatches] = useState<Matches>(() => unknown)
  useEffect(() => {
    if (fields.every(({ regEx }) => regEx === undefined)) return undefined
    let isLeft = false
    compilePatterns(fields).then(
      (compiled) => {
        if (!isLeft) setMatches(() => compiled)
      },
      // Without them the gateway's answer reports values that do not match.
      () => undefined,
    )
    return () => {
      isLeft = true
    }
  }, [fields])
  return matches
}

export async function compilePatterns(fields: readonly FormAttributeView[]): Promise<Matches> {
  const { RE2JS } = await import('re2js')
  const patterns = new Map(
    fields.flatMap(({ name, regEx }) => (regEx === undefined ? [] : [[name, RE2JS.compile(regEx)] as const])),
  )
  return (name, value) => patterns.get(name)?.matcher(value).matches()
}
