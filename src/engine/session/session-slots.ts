import { slotsOf } from '#engine/session/session-data.ts'
import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey, type JsonValue } from '#kernel/json.ts'
import type { SessionStore } from '#storage/session-store.ts'

const maxSlotBytes = 64 * 1024
const maxSlots = 32
const slotName = /^[\w.:-]{1,100}$/

/** What modules keep in sessions, sealed so that the database alone does not give it away. */
export class SessionSlots {
  readonly #store: Pick<SessionStore, 'find' | 'update'>
  readonly #secrets: SecretBox
  readonly #clock: Clock

  constructor(store: Pick<SessionStore, 'find' | 'update'>, secrets: SecretBox, clock: Clock) {
    this.#store = store
    this.#secrets = secrets
    this.#clock = clock
  }

  async read(hashedId: string, publicId: string, slot: string): Promise<JsonValue | undefined> {
    const session = await this.#store.find(hashedId, this.#clock())
    const sealed = session === undefined ? undefined : slotsOf(session.data)[slot]
    return sealed === undefined ? undefined : (await this.#secrets.open(sealed, ownerOf(publicId, slot)))['value']
  }

  async write(hashedId: string, publicId: string, slot: string, value: JsonValue | undefined): Promise<void> {
    const sealed = value === undefined ? undefined : await this.seal(publicId, slot, value)
    await this.#store.update(hashedId, this.#clock(), ({ data, idleSeconds }) => {
      const slots = slotsOf(data)
      if (sealed === undefined) delete slots[slot]
      else slots[slot] = sealed
      if (Object.keys(slots).length > maxSlots) throw new GatewayError('BAD_REQUEST', 'a session with too many slots')
      return { data: { ...data, slots: { ...slots } }, idleSeconds }
    })
  }

  /** Bound to the session's public id and the slot: a text that is moved elsewhere does not open. */
  async seal(publicId: string, slot: string, value: JsonValue): Promise<string> {
    if (!slotName.test(slot) || isForbiddenKey(slot)) throw new GatewayError('BAD_REQUEST', `a slot named "${slot}"`)
    if (Buffer.byteLength(JSON.stringify(value)) > maxSlotBytes) {
      throw new GatewayError('BAD_REQUEST', `the slot "${slot}" would have more than ${maxSlotBytes} bytes`)
    }
    return await this.#secrets.seal({ value }, ownerOf(publicId, slot))
  }
}

const ownerOf = (publicId: string, slot: string): string => JSON.stringify([publicId, slot])
