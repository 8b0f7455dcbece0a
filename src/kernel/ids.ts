import { hash, randomBytes, randomFillSync } from 'node:crypto'
import { hostname } from 'node:os'
import process from 'node:process'

let lastMillis = 0
let sequence = 0

/** A UUIDv7 (RFC 9562): sorts by creation time, and within this process strictly increases. */
export function newId(): string {
  const now = Date.now()
  if (now > lastMillis) {
    lastMillis = now
    sequence = pool.readUInt16BE(take(2)) & 0x7ff
  } else if (++sequence > 0xfff) {
    lastMillis++
    sequence = 0
  }
  const time = lastMillis.toString(16).padStart(12, '0')
  const tail = randomTail()
  const middle = (0x7000 | sequence).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-${middle}-${tail.slice(0, 4)}-${tail.slice(4)}`
}

/** The creation time of an id. */
export const idTime = (id: string): Date => new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) || 0)

/** A call for randomness costs more than the bytes, so one call fills this buffer. Not for secrets. */
const pool = Buffer.alloc(8192)
let taken = pool.length

/** The offset of the next random bytes. */
function take(bytes: number): number {
  if (taken + bytes > pool.length) {
    randomFillSync(pool)
    taken = 0
  }
  taken += bytes
  return taken - bytes
}

/** 62 random bits after the variant's two, as 16 hexadecimal digits. */
function randomTail(): string {
  const start = take(8)
  pool[start] = ((pool[start] ?? 0) & 0x3f) | 0x80
  return pool.toString('hex', start, start + 8)
}

/** 256 bits from the system's generator, base64url: session ids and other bearer secrets. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** SHA-256, base64url: stored, or used as a cache key, instead of a bearer secret. */
export function secretHash(secret: string): string {
  return hash('sha256', secret, 'base64url')
}

/** Identifies a worker, for people too: host, process and a unique part. */
export const processName = (): string => `${hostname()}:${process.pid}:${newId().slice(-8)}`
