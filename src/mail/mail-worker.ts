import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import { withoutSecrets } from '#kernel/secret-values.ts'
import { type Tracer, tracer } from '#kernel/tracing.ts'
import { htmlOfText } from '#sdk/mail/mail-body.ts'
import { type ClaimedMail, type MailKind, mailKinds } from '#sdk/mail/new-mail.ts'
import type { SendOutcome } from '#sdk/notifier/notifier.ts'
import type { MailStore } from './mail-store.ts'
import type { Notifiers } from './notifiers.ts'

/** The outcome of an attempt to send a mail; `unknown` if the connection broke after the hand-over. */
type MailOutcome = 'sent' | 'retried' | 'failed' | 'unknown'

export interface MailMeter {
  counted(outcome: MailOutcome): void
}

export type MailQueue = Pick<MailStore, 'claim' | 'handOver' | 'sent' | 'failed' | 'unknown'>

interface MailWorkerParts {
  readonly store: MailQueue
  readonly clock: Clock
  readonly log: Logger
  readonly meter: MailMeter
  /** Runs `work` with the Notifiers of the current configuration, which stay open until it ends. */
  use<T>(work: (notifiers: Notifiers) => Promise<T>): Promise<T>
}

interface MailWorkerTimes {
  /** How long to rest if nothing was due. */
  readonly idleMillis: number
  /** Longer than any attempt takes, so that no other worker claims a mail that is being sent. */
  readonly leaseMillis: number
  /** When to look again for a Notifier that the configuration lacks. */
  readonly noNotifierMillis: number
}

const defaultTimes: MailWorkerTimes = { idleMillis: 1_000, leaseMillis: 3 * 60_000, noNotifierMillis: 60_000 }
/** How many mails, and how many messages to channels, one process sends concurrently. */
const atOnce = 5

/** Attempts to record the outcome of a mail, with a growing pause between them: a database may be restarting. */
const noteTries = 6
const firstNoteMillis = 200

/**
 * Sends the mails of the outbox. A worker claims each mail, so that only one process sends it, and tries until it
 * is handed over, rejected for good, or about a day has passed. The hand-over is recorded before it starts: if the
 * process dies during it, the mail is not sent again automatically, but shown as unknown. Mails and messages to channels
 * are sent independently, so that a channel whose receiver does not answer delays no mail.
 */
export class MailWorker {
  readonly #parts: MailWorkerParts
  readonly #times: MailWorkerTimes
  readonly #done: Promise<unknown>
  #closed = false
  readonly #wakes = new Set<() => void>()

  constructor(parts: MailWorkerParts, times: Partial<MailWorkerTimes> = {}) {
    this.#parts = parts
    this.#times = { ...defaultTimes, ...times }
    this.#done = Promise.all(mailKinds.map((kind) => this.#run(kind)))
  }

  /** Waits for mails that are being sent; claims no others. */
  async close(): Promise<void> {
    this.#closed = true
    for (const wake of this.#wakes) wake()
    await this.#done
  }

  async #run(kind: MailKind): Promise<void> {
    while (!this.#closed) {
      try {
        while (!this.#closed && (await this.#turn(kind)) > 0);
      } catch (err) {
        this.#parts.log.error('mails could not be looked for', { err })
      }
      await this.#sleep()
    }
  }

  #sleep(): Promise<void> {
    if (this.#closed) return Promise.resolve()
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#wakes.delete(end)
        resolve()
      }
      const timer = setTimeout(end, this.#times.idleMillis)
      timer.unref()
      this.#wakes.add(end)
    })
  }

  /** Sends some due mails; returns how many it claimed. */
  #turn(kind: MailKind): Promise<number> {
    return this.#parts.use(async (notifiers) => {
      if (notifiers.isEmpty) return 0
      const mails = await this.#parts.store.claim(atOnce, this.#times.leaseMillis, kind)
      await Promise.all(
        mails.map((mail) =>
          tracer === undefined ? this.#attempt(mail, notifiers) : this.#traced(tracer, mail, notifiers),
        ),
      )
      return mails.length
    })
  }

  #traced(tracer: Tracer, mail: ClaimedMail, notifiers: Notifiers): Promise<void> {
    const attributes = { 'gatehouse.mail.id': mail.id, 'gatehouse.notifier': mail.notifier ?? 'default' }
    return tracer.span({ name: 'send mail', kind: 'consumer', parent: 'none', attributes }, () =>
      this.#attempt(mail, notifiers),
    )
  }

  /** If recording the outcome fails, the mail stays claimed until its lease ends; then it is queued, or unknown. */
  async #attempt(mail: ClaimedMail, notifiers: Notifiers): Promise<void> {
    const { log } = this.#parts
    try {
      const notifier = notifiers.find(mail.notifier)
      if (notifier === undefined) {
        const reason = mail.notifier === undefined ? 'no Notifier is the default one' : `no Notifier "${mail.notifier}"`
        log.warn('a mail waits for its Notifier', { ...fieldsOf(mail), reason })
        await this.#parts.store.failed(mail, reason, { inMillis: this.#times.noNotifierMillis })
        return
      }
      const { id, recipient, subject, text, html = htmlOfText(text), links = [] } = mail
      const handOver = async (): Promise<void> => {
        if (!(await this.#parts.store.handOver(mail))) throw new Error('another process has taken the mail')
      }
      const outgoing = { id, recipient, subject, text, html, links, date: this.#parts.clock() }
      await this.#note(mail, await notifier.send(outgoing, handOver))
    } catch (err) {
      log.error('what became of a mail could not be noted', { ...fieldsOf(mail), err })
    }
  }

  async #note(mail: ClaimedMail, outcome: SendOutcome): Promise<void> {
    const { store, log, meter } = this.#parts
    const fields = fieldsOf(mail)
    if (outcome.kind === 'accepted') {
      if (!(await this.#noted(() => store.sent(mail)))) {
        log.warn('a mail was taken by another process while it was sent', fields)
      }
      meter.counted('sent')
      return
    }
    if (outcome.kind === 'unknown') {
      await this.#noted(() => store.unknown(mail, withoutSecrets(outcome.reason)))
      log.error('it is unknown whether a mail arrived; retry it, or leave it', { ...fields, reason: outcome.reason })
      meter.counted('unknown')
      return
    }
    const inMillis = outcome.kind === 'refused' ? undefined : mailRetryMillis(mail.attempt)
    const reason = withoutSecrets(outcome.reason)
    if (inMillis === undefined) {
      await this.#noted(() => store.failed(mail, reason))
      log.error('a mail could not be sent and was given up', { ...fields, reason })
      meter.counted('failed')
      return
    }
    await this.#noted(() => store.failed(mail, reason, { inMillis }))
    log.warn('a mail could not be sent yet', { ...fields, reason, nextSeconds: Math.ceil(inMillis / 1000) })
    meter.counted('retried')
  }

  /** Retries, because the server's answer must not be lost while the database is briefly unavailable. */
  async #noted(note: () => Promise<boolean>): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        return await note()
      } catch (error) {
        if (tries === noteTries) throw error
        await delay(firstNoteMillis * 2 ** (tries - 1))
      }
    }
  }
}

/** The recipient is personal, and the text may be secret: neither is logged. */
const fieldsOf = ({ id, run, step, attempt }: ClaimedMail) => ({ mail: id, workflowId: run, step, attempt })

const firstRetryMillis = 5_000
const longestRetryMillis = 30 * 60_000
/** With the pauses between them they take about a day. */
const maxAttempts = 60

/**
 * The pause after that many failed attempts: twice as long each time, up to half an hour. Half of it is random, so
 * that a server that recovers doesn't get all mails at once. Undefined: the mail is given up.
 */
export function mailRetryMillis(attempts: number, chance = Math.random()): number | undefined {
  if (attempts >= maxAttempts) return undefined
  const whole = Math.min(firstRetryMillis * 2 ** Math.min(attempts - 1, 30), longestRetryMillis)
  return whole / 2 + (whole / 2) * chance
}
