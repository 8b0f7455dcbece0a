import { readFileSync } from 'node:fs'
import process from 'node:process'

/** Preloaded into a gateway process: its clock differs from that of the machine by the milliseconds in a file. */
const file = process.env['GATEHOUSE_TEST_CLOCK'] ?? ''
const readEveryMillis = 20
const MachineDate = Date
let millis = 0
let read = Number.NEGATIVE_INFINITY

function now(): number {
  if (performance.now() - read > readEveryMillis) {
    millis = Number(readFileSync(file, 'utf8'))
    read = performance.now()
  }
  return MachineDate.now() + millis
}

class MovedDate extends MachineDate {
  constructor(...given: [] | [string | number | Date] | [number, number]) {
    super(...((given.length === 0 ? [now()] : given) as [number]))
  }

  static override now(): number {
    return now()
  }
}

Object.assign(globalThis, { Date: MovedDate })
