import { median } from './median.ts'
import { formatTable, number, type Row } from './table.ts'

/** What is measured every ten seconds. */
export interface SoakSample {
  /** Since the start. */
  readonly minutes: number
  readonly residentMegabytes: number
  readonly heapMegabytes: number
  readonly openFiles: number
  readonly timers: number
  readonly databaseMegabytes: number
  /** Answers a second, and their latency in milliseconds. */
  readonly perSecond: number
  readonly p99: number
}

/** Memory is compared with this minute: by then caches are full and the engine has compiled. */
export const settledMinute = 10
export const mostGrowth = 1.05

/** One row for each minute: medians, and the worst p99. */
export function soakTable(samples: readonly SoakSample[]): string {
  const head = ['minute', 'resident', 'heap', 'open files', 'timers', 'database', 'requests', 'p99']
  const minutes = new Set(samples.map(({ minutes: at }) => minuteOf(at)))
  const rows = [...minutes].map((minute): Row => {
    const those = samples.filter(({ minutes: at }) => minuteOf(at) === minute)
    const middle = (name: keyof SoakSample): number => median(those.map((sample) => sample[name]))
    return [
      String(minute),
      `${number(middle('residentMegabytes'))} MB`,
      `${number(middle('heapMegabytes'))} MB`,
      number(middle('openFiles')),
      number(middle('timers')),
      `${number(middle('databaseMegabytes'))} MB`,
      `${number(middle('perSecond'))}/s`,
      `${Math.max(...those.map(({ p99 }) => p99)).toFixed(1)} ms`,
    ]
  })
  return formatTable([head, ...rows])
}

/** The first minute is 1. */
const minuteOf = (minutes: number): number => Math.max(1, Math.ceil(minutes))

/** Resident memory of the last minute as a multiple of minute ten's; undefined if the soak was shorter. */
export function memoryGrowth(samples: readonly SoakSample[]): number | undefined {
  const last = Math.max(0, ...samples.map(({ minutes }) => minuteOf(minutes)))
  if (last <= settledMinute) return undefined
  const resident = (minute: number): number =>
    median(samples.filter(({ minutes }) => minuteOf(minutes) === minute).map((one) => one.residentMegabytes))
  return resident(last) / resident(settledMinute)
}
