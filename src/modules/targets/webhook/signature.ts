import { createHmac } from 'node:crypto'

/** What is signed: everything that decides what a request does, and when it was made. */
export interface SignedRequest {
  /** Seconds since 1970, as sent. */
  readonly timestamp: string
  readonly method: string
  /** With its query, as sent. */
  readonly path: string
  readonly body: string
}

/** `v1=` and the HMAC-SHA256, in hexadecimal, of the four parts, each but the last followed by a line feed. */
export function signature(secret: string, { timestamp, method, path, body }: SignedRequest): string {
  const digest = createHmac('sha256', secret).update(`${timestamp}\n${method}\n${path}\n${body}`).digest('hex')
  return `v1=${digest}`
}
