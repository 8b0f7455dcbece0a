import type { Path } from '#kernel/issues.ts'
import type { Closable } from '#kernel/scope.ts'
import type { MailLink } from '#sdk/mail/new-mail.ts'
import { defineModule, type ModuleDefinition, type ModuleOf, type Prepared } from '#sdk/module/module.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** A mail ready to be sent, in both forms. */
export interface OutgoingMail {
  /** The same for every attempt, unique among all mails; the notifier adds its own domain. */
  readonly id: string
  /** A mail address, or `#` and a name for a message to a channel. */
  readonly recipient: string
  readonly subject: string
  readonly text: string
  readonly html: string
  /** Links of a message to a channel. A mail has its links in its text. */
  readonly links: readonly MailLink[]
  /** The time of the hand-over, for its Date. */
  readonly date: Date
}

/** Whether the mail server accepted the mail. */
export type SendOutcome =
  | { readonly kind: 'accepted' }
  /** Another attempt may succeed. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** No attempt will. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** It was handed over, and the server did not say whether it accepted it. Only an administrator can send it again. */
  | { readonly kind: 'unknown'; readonly reason: string }

/**
 * Records that the mail is about to be handed over. Await it just before the irreversible part, such as the end of
 * the data; after a rejection the mail must not be sent.
 */
export type HandOver = () => Promise<void>

/** Delivers mails. */
export interface Notifier extends Closable {
  /** Resolves when the mail was handed over, or not; never takes longer than its time limits. Does not throw. */
  send(mail: OutgoingMail, handOver: HandOver): Promise<SendOutcome>
}

/** Of the Notifiers with these names, the one for mails that name none: the only one, or the one called `default`. */
export const isDefaultNotifier = (name: string, names: readonly string[]): boolean =>
  names.length === 1 || name === 'default'

/** The name by which a task refers to the default Notifier. */
export const defaultNotifier = ''

/** Everything that sends mail calls it to declare its Notifier; an empty name is the default one. */
export function referNotifier(name: string, path: Path, context: Pick<ParseContext, 'refer'>): void {
  context.refer('notifier', name, path, name === defaultNotifier ? 'warning' : 'error')
}

/** What a Notifier can deliver: mails to users, messages to a channel, or either. */
type Deliverable = 'mails' | 'channel messages' | 'both'

/** A notifier whose parameters are checked. */
export interface PreparedNotifier extends Prepared<Notifier> {
  readonly delivers: Deliverable
}
/** A kind of notifier, as the catalog lists it. */
export type NotifierModule = ModuleOf<PreparedNotifier>

interface NotifierDefinition<C> extends ModuleDefinition<C, Notifier> {
  readonly delivers: Deliverable
}

/** Describes a kind of notifier. */
export function defineNotifier<C>({ delivers, ...definition }: NotifierDefinition<C>): NotifierModule {
  const module = defineModule(definition)
  return { ...module, prepare: (...given) => ({ ...module.prepare(...given), delivers }) }
}
