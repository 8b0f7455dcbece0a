import type { Server } from './drive.ts'

/** Another server of the same purpose. */
export interface Peer extends Server {
  readonly name: string
  stop(): Promise<void>
}
