import { createRootRoute } from '@tanstack/react-router'
import { Shell } from './shell.tsx'

/** The router parses texts that look like numbers, or are true or false. */
const text = (value: unknown): string | undefined => {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The known query parameters of an address; others are dropped. */
export const words =
  <const K extends string>(...names: readonly K[]) =>
  (search: Record<string, unknown>): { [name in K]?: string | undefined } => {
    const read: { [name in K]?: string | undefined } = {}
    for (const name of names) {
      const value = text(search[name])
      if (value !== undefined) read[name] = value
    }
    return read
  }

export const root = createRootRoute({ component: Shell })
