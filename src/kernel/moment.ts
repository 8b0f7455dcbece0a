const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3600_000, d: 24 * 3600_000 }

/** A time as people write it: `90s`, `15m`, `1h` or `7d` before now, or an ISO 8601 date; undefined for anything else. */
export function parseMoment(text: string, now: Date): Date | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (count !== undefined) return new Date(now.getTime() - Number(count) * (units[unit] ?? 0))
  if (!/^\d{4}-\d\d-\d\d(?:T[\d:.]{5,16}(?:Z|[+-]\d\d:\d\d)?)?$/.test(text)) return undefined
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : new Date(time)
}
