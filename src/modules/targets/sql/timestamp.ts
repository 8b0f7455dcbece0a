const syntax = /^(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d(?::?\d\d)?)?$/i

/** An ISO 8601 time in UTC, to the microsecond, without zeros at its end; without an offset it is UTC. Undefined for what is none. */
export function canonicalTimestamp(text: string): string | undefined {
  const parts = syntax.exec(text)
  if (parts === null) return undefined
  const [, day = '', hours = '', minutes = '', seconds = '', fraction = '', offset = 'Z'] = parts
  if (canonicalDate(day) === undefined || hours > '23' || minutes > '59' || seconds > '59') return undefined
  if (/[1-9]/.test(fraction.slice(6))) return undefined
  const away = offsetMinutes(offset)
  if (away === undefined) return undefined
  const time = new Date(Date.parse(`${day}T${hours}:${minutes}:${seconds}Z`) - away * 60_000)
  const year = time.getUTCFullYear()
  if (year < 1 || year > 9999) return undefined
  const part = fraction.slice(0, 6).replace(/0+$/, '')
  return `${time.toISOString().slice(0, 19)}${part === '' ? '' : `.${part}`}Z`
}

export function canonicalDate(text: string): string | undefined {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || text < '0001-01-01') return undefined
  const time = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text) ? text : undefined
}

function offsetMinutes(offset: string): number | undefined {
  if (/^z$/i.test(offset)) return 0
  const hours = Number(offset.slice(1, 3))
  const minutes = Number(offset.slice(3).replace(':', '') || '0')
  if (hours > 23 || minutes > 59) return undefined
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}
