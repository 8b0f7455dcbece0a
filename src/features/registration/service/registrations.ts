import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId, newSecret, secretHash } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import type { UniqueValue } from '#sdk/target/new-account.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import { Invitations, registrationMail } from './invitations.ts'
import { type RegistrationStore, reservationScope } from './registration-store.ts'

/** A mail with a secret that only its recipient learns. */
export interface SecretMail {
  readonly recipient: string
  write(secret: string): MailText
}

/** A submitted registration whose link was not opened yet. */
interface OpenRegistration {
  readonly id: string
  readonly data: JsonObject
}

/**
 * The result of a call to a form: the workflow started at once, a mail was sent first, a mail was confirmed and the
 * workflow started, or the link of a mail was invalid; the call was refused for its content, for not coming from a
 * person, or for coming too often, or it failed. Or a user was invited.
 */
export type RegistrationEvent =
  | 'started'
  | 'mailed'
  | 'confirmed'
  | 'unknown-link'
  | 'refused'
  | 'not-human'
  | 'limited'
  | 'failed'
  | 'invited'

/** A confirmed registration and the workflow to start for it. */
export interface RegistrationStart {
  readonly id: string
  readonly unique: readonly UniqueValue[]
  readonly call: WorkflowCall
  /** Returns the unique values that another user already has. */
  check(): Promise<readonly UniqueValue[]>
  /** The invitation that it accepts. */
  readonly invitation?: string | undefined
}

/** Whether the workflow of a registration started. */
export type RegistrationOutcome =
  | { readonly kind: 'started'; readonly result: WorkflowResult }
  /** Others have these values, or have reserved them. */
  | { readonly kind: 'taken'; readonly values: readonly UniqueValue[] }
  /** The invitation was used or revoked meanwhile. */
  | { readonly kind: 'not-invited' }

export interface RegistrationMeter {
  counted(form: string, event: RegistrationEvent): void
}

export interface RegistrationParts {
  readonly store: RegistrationStore
  readonly secrets: SecretBox
  readonly runs: Pick<RunService, 'start'>
  readonly clock: Clock
  readonly meter?: RegistrationMeter | undefined
}

/** How long values are reserved while the run starts. */
const startMillis = 5 * 60_000
/** How long values stay reserved after their run ended, for directories that show them late. */
const settleMillis = 60_000
const underWayMillis = 10_000

/**
 * What the registration form of one application stores until its run ends. It survives restarts and is shared by all
 * gateways of a database.
 */
export class Registrations {
  readonly invitations: Invitations
  readonly #parts: RegistrationParts

  constructor(parts: RegistrationParts) {
    this.#parts = parts
    this.invitations = new Invitations(parts)
  }

  /**
   * Starts the run of one registration and reserves the values for it: others can't get them until the run ends.
   * Calls `check` once they are reserved, since another registration could take them between a check and a reservation.
   * The same id starts only one run.
   */
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

  /** True only for the first use of a token, such as the solution of a puzzle. */
  async useOnce(token: string, forMillis: number): Promise<boolean> {
    const key = secretHash(JSON.stringify(['used', token]))
    return (await this.#parts.store.reserve(newId(), [key], forMillis)).length === 0
  }

  /** Stores an encrypted registration until its mail address is confirmed, in one transaction with the mail. */
  async keep(form: string, id: string, data: JsonObject, mail: SecretMail, validMillis: number): Promise<void> {
    const { store, secrets, clock } = this.#parts
    const secret = newSecret()
    const outgoing = registrationMail(id, { ...mail.write(secret), recipient: mail.recipient })
    const sealed = await secrets.seal(data, id)
    const expires = new Date(clock().getTime() + validMillis)
    await store.addPending({ id, form, tokenHash: secretHash(secret), sealed, expires }, [outgoing])
  }

  /** Undefined if the secret does not belong to the form, or the registration has expired. */
  async open(form: string, secret: string): Promise<OpenRegistration | undefined> {
    const found = await this.#parts.store.findPending(form, secretHash(secret))
    if (found === undefined) return undefined
    return { id: found.id, data: await this.#parts.secrets.open(found.sealed, found.id) }
  }

  async forget(id: string): Promise<void> {
    await this.#parts.store.removePending(id)
  }

  /** For metrics. */
  counted(form: string, event: RegistrationEvent): void {
    this.#parts.meter?.counted(form, event)
  }
}

/** A hash, so that the database does not reveal who is registering. */
const reservationKey = ({ attribute, value }: UniqueValue): string =>
  secretHash(JSON.stringify(['value', attribute.toLowerCase(), value.normalize('NFC').toLowerCase()]))

const valuesOf = (keys: readonly string[], values: ReadonlyMap<string, UniqueValue>): UniqueValue[] =>
  keys.flatMap((key) => values.get(key) ?? [])
