import { askGateway } from './host-bridge.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { javaText } from './java-value.ts'

/** com.tremolosecurity.provisioning.util.EncryptedMessage: what only the gateway can decrypt. */
export class EncryptedMessage {
  static readonly class = EncryptedMessage
  readonly #sealed: string

  constructor(sealed: string) {
    this.#sealed = sealed
  }

  toJSON(): { readonly msg: string } {
    return { msg: this.#sealed }
  }
}

export const encrypted = (text: unknown): EncryptedMessage =>
  new EncryptedMessage(javaText(askGateway('encrypt', { text: javaText(text) })))

export function decrypted(message: unknown): string {
  if (!(message instanceof EncryptedMessage)) throw new IllegalArgumentException('an EncryptedMessage is needed')
  return javaText(askGateway('decrypt', { sealed: message.toJSON().msg }))
}

/** Throws if it is not the JSON of one. */
export function readEncrypted(json: unknown): EncryptedMessage {
  const { msg } = Object(JSON.parse(javaText(json))) as { readonly msg?: unknown }
  if (typeof msg === 'string') return new EncryptedMessage(msg)
  throw new IllegalArgumentException('this is not a message that the gateway encrypted')
}
