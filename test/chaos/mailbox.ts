import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

/** A mail server that remembers accepted mails, by Message-ID. */
export class Mailbox {
  /** How often each Message-ID was delivered, and to whom. */
  readonly taken = new Map<string, { readonly recipient: string; readonly subject: string; times: number }>()
  readonly #server: SMTPServer

  private constructor() {
    this.#server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onData: (stream, session, done) => {
        let text = ''
        stream.on('data', (chunk: Buffer) => {
          text += chunk.toString('latin1')
        })
        stream.on('end', () => {
          this.#take(text, session.envelope.rcptTo[0]?.address ?? '')
          done()
        })
      },
    })
    this.#server.on('error', () => {})
  }

  static async start(): Promise<Mailbox> {
    const box = new Mailbox()
    await new Promise<void>((resolve) => box.#server.listen(0, '127.0.0.1', resolve))
    return box
  }

  get port(): number {
    return (this.#server.server.address() as AddressInfo).port
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #take(text: string, recipient: string): void {
    const header = (name: string): string => new RegExp(`^${name}:\\s*(.+?)\\r?$`, 'im').exec(text)?.[1] ?? ''
    const id = header('message-id')
    const known = this.taken.get(id)
    if (known === undefined) this.taken.set(id, { recipient, subject: header('subject'), times: 1 })
    else known.times++
  }
}
