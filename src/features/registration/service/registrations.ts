import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId, newSecret, secretHash } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import type { UniqueValue } from '#sdk/target/new-account.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import type { RunAccess } from '#workflows/record/run-access.ts'
import { Invitations, registrationMail } from './invitations.ts'
import type {
  OpenRegistration,
  RegistrationAccess,
  RegistrationEvent,
  RegistrationOutcome,
  RegistrationStart,
  SecretMail,
} from './registration-access.ts'
import { type RegistrationStore, reservationScope } from './registration-store.ts'

export interface RegistrationMeter {
  counted(form: string, event: RegistrationEvent): void
}

export interface RegistrationParts {
  readonly store: RegistrationStore
  readonly secrets: SecretBox
  readonly runs: Pick<RunAccess, 'start'>
  readonly clock: Clock
  readonly meter?: RegistrationMeter | undefined
}

/** How long values are reserved while the run starts. */
const startMillis = 5 * 60_000
/** How long values stay reserved after their run ended, for directories that show them late. */
const settleMillis = 60_000
const underWayMillis = 10_000

export class Registrations implements RegistrationAccess {
  readonly invitations: Invitations
  readonly #parts: RegistrationParts

  constructor(parts: RegistrationParts) {
    this.#parts = parts
    this.invitations = new Invitations(parts)
  }

  /** Reserves the values before it checks them: another registration could take them between a check and a reservation. */
  async start({ id, unique, call, check, invitation }: RegistrationStart): Promise<RegistrationOutcome> {
    const { store } = this.#parts
    const keyOf = new Map(unique.map((value) => [reservationKey(value), value]))
    const reserved = await store.reserve(id, [...keyOf.keys()], startMillis)
    if (reserved.length > 0) return { kind: 'taken', values: valuesOf(reserved, keyOf) }
    let accepted = false
    try {
      const taken = await check()
      if (taken.length > 0) {
        await store.release(id)
        return { kind: 'taken', values: taken }
      }
      if (invitation !== undefined) {
        accepted = await store.moveInvitation(invitation, 'open', 'accepted', [])
        if (!accepted) {
          await store.release(id)
          return { kind: 'not-invited' }
        }
      }
      const result = await this.#run(id, call)
      await store.holdForRun(id, result.id, settleMillis)
      return { kind: 'started', result }
    } catch (error) {
      // The values must be free for another attempt. If this fails too, the reservation expires.
      await store.release(id).catch(() => {})
      if (accepted && invitation !== undefined) {
        await store.moveInvitation(invitation, 'accepted', 'open', []).catch(() => {})
      }
      throw error
    }
  }

  async #run(id: string, call: WorkflowCall): Promise<WorkflowResult> {
    const key = { scope: reservationScope, key: id, bodyHash: secretHash(call.head.workflow) }
    const end = performance.now() + underWayMillis
    for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
      const start = await this.#parts.runs.start(call, key)
      if ('result' in start) return start.result
      if (start.kind === 'other-body' || performance.now() > end) {
        throw new GatewayError('CONFLICT', `the registration ${id} is being started already`, { retryAfter: 5 })
      }
      await delay(pause)
    }
  }

  async useOnce(token: string, forMillis: number): Promise<boolean> {
    const key = secretHash(JSON.stringify(['used', token]))
    return (await this.#parts.store.reserve(newId(), [key], forMillis)).length === 0
  }

  async keep(form: string, id: string, data: JsonObject, mail: SecretMail, validMillis: number): Promise<void> {
    const { store, secrets, clock } = this.#parts
    const secret = newSecret()
    const outgoing = registrationMail(id, { ...mail.write(secret), recipient: mail.recipient })
    const sealed = await secrets.seal(data, id)
    const expires = new Date(clock().getTime() + validMillis)
    await store.addPending({ id, form, tokenHash: secretHash(secret), sealed, expires }, [outgoing])
  }

  async open(form: string, secret: string): Promise<OpenRegistration | undefined> {
    const found = await this.#parts.store.findPending(form, secretHash(secret))
    if (found === undefined) return undefined
    return { id: found.id, data: await this.#parts.secrets.open(found.sealed, found.id) }
  }

  async forget(id: string): Promise<void> {
    await this.#parts.store.removePending(id)
  }

  counted(form: string, event: RegistrationEvent): void {
    this.#parts.meter?.counted(form, event)
  }
}

/** A hash, so that the database does not reveal who is registering. */
const reservationKey = ({ attribute, value }: UniqueValue): string =>
  secretHash(JSON.stringify(['value', attribute.toLowerCase(), value.normalize('NFC').toLowerCase()]))

const valuesOf = (keys: readonly string[], values: ReadonlyMap<string, UniqueValue>): UniqueValue[] =>
  keys.flatMap((key) => values.get(key) ?? [])
