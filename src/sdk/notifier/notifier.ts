import type { Path } from '#kernel/issues.ts'
import type { Closable } from '#kernel/scope.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** A mail as it goes out, both of its forms made. */
export interface OutgoingMail {
  /** The same for every attempt, unique among all mails; the notifier puts its own domain behind it. */
  readonly id: string
  readonly recipient: string
  readonly subject: string
  readonly text: string
  readonly html: string
  /** When it is handed over, for its Date. */
  readonly date: Date
}

export type SendOutcome =
  | { readonly kind: 'accepted' }
  /** Another attempt may succeed. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** No attempt will. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** It was handed over, and nobody said whether it was taken. It is not sent again unless an administrator says so. */
  | { readonly kind: 'unknown'; readonly reason: string }

/**
 * Notes that the mail is about to be given out of hand. To be awaited just before what cannot be taken back, such as the
 * end of the data; after a rejection the mail must not go out.
 */
export type HandOver = () => Promise<void>

/** What carries mails to people. */
export interface Notifier extends Closable {
  /** Settles when the mail was handed over, or not; never takes longer than its time limits allow. Does not throw. */
  send(mail: OutgoingMail, handOver: HandOver): Promise<SendOutcome>
}

/** Of the Notifiers with these names, this one sends mails that name none: the only one, or the one called `default`. */
export const standsForDefault = (name: string, names: readonly string[]): boolean =>
  names.length === 1 || name === 'default'

/** The name by which a task refers to the default Notifier. */
export const defaultNotifier = ''

/** To be called by whatever mails: says which Notifier it needs, with an empty name the default one. */
export function referNotifier(name: string, path: Path, context: Pick<ParseContext, 'refer'>): void {
  context.refer('notifier', name, path, name === defaultNotifier ? 'warning' : 'error')
}

export type PreparedNotifier = Prepared<Notifier>
export type NotifierModule = Module<Notifier>

export const defineNotifier = <C>(definition: ModuleDefinition<C, Notifier>): NotifierModule => defineModule(definition)
