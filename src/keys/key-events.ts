import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { KeyRing, RingKey } from './key-ring.ts'

/** What can happen to a key, with its log line and its audit action. */
const events = {
  created: { message: 'key created', action: 'add' },
  readBack: { message: 'key read back from the issuer', action: 'replace' },
  missing: { message: 'key no longer found at the issuer', action: 'replace' },
  activated: { message: 'key activated', action: 'replace' },
  retired: { message: 'key retired', action: 'replace' },
  replaced: { message: 'next key replaced before it signed', action: 'delete' },
  removed: { message: 'key removed', action: 'delete' },
  revoked: { message: 'key revoked', action: 'delete' },
  published: { message: 'keys published', action: 'replace' },
  publishFailed: { message: 'keys not published', action: 'refuse' },
  refused: { message: 'given key refused', action: 'refuse' },
  custodyFailed: { message: 'key custody failed', action: 'refuse' },
  accepted: { message: 'key source in order again', action: 'replace' },
} as const satisfies Record<string, { message: string; action: AuditEntry['action'] }>

type KeyEventName = keyof typeof events

interface KeyEvent {
  readonly name: KeyEventName
  /** Empty if it is not about a named key. */
  readonly kid: string
  readonly details?: Readonly<Record<string, unknown>>
}

export interface KeyEventParts {
  readonly audit: Pick<AuditStore, 'append'>
  readonly clock: Clock
  readonly log: Logger
}

const problems: ReadonlySet<KeyEventName> = new Set(['missing', 'publishFailed', 'refused', 'custodyFailed'])

/**
 * Logs and audits the life of keys: one line and one row for each event, with endpoint and kid. The process that
 * stored the change reports it, so only one replica does.
 */
export class KeyEvents {
  readonly #parts: KeyEventParts

  constructor(parts: KeyEventParts) {
    this.#parts = parts
  }

  /** Reports the events of one change. `by` is the operator, if one made it. */
  ringChanged(endpoint: string, before: KeyRing, after: KeyRing, by?: string): Promise<void> {
    return this.report(endpoint, ringEvents(before, after), by)
  }

  /** Never rejects: the change is already stored, and the log has it. */
  async report(endpoint: string, happened: readonly KeyEvent[], by = 'gatehouse'): Promise<void> {
    if (happened.length === 0) return
    for (const { name, kid, details } of happened) this.#log(endpoint, name, { kid, ...details, ...operator(by) })
    try {
      await this.#parts.audit.append(happened.map((event) => this.#row(endpoint, event, by)))
    } catch (err) {
      this.#parts.log.error('key events not audited', { endpoint, events: happened.map(({ name }) => name), err })
    }
  }

  #log(endpoint: string, name: KeyEventName, fields: Readonly<Record<string, unknown>>): void {
    const { log } = this.#parts
    const all = { endpoint, ...fields }
    if (problems.has(name)) log.error(events[name].message, all)
    else log.info(events[name].message, all)
  }

  #row(endpoint: string, { name, kid, details }: KeyEvent, by: string): AuditEntry {
    return {
      id: newId(),
      time: this.#parts.clock(),
      requestor: by,
      subject: endpoint,
      workflow: { id: newId(), name: 'keys' },
      target: endpoint,
      kind: 'key',
      action: events[name].action,
      attribute: 'kid',
      ...(kid === '' ? {} : { value: kid }),
      reason: JSON.stringify({ event: events[name].message, ...details }),
    }
  }
}

const operator = (by: string): { by?: string } => (by === 'gatehouse' ? {} : { by })

/** The events between two states of a ring, in the order of a key's life. */
function ringEvents(before: KeyRing, after: KeyRing): KeyEvent[] {
  const old = new Map(before.keys.map((key) => [key.kid, key]))
  const kept = new Set(after.keys.map(({ kid }) => kid))
  const gone = before.keys.filter(({ kid }) => !kept.has(kid))
  return [
    ...gone.map((key) => ({ name: endOf(key, after), kid: key.kid, details: { was: key.state } })),
    ...after.keys.flatMap((key) => keyEvents(old.get(key.kid), key)),
  ]
}

function endOf({ kid, state }: RingKey, after: KeyRing): KeyEventName {
  if (after.revoked.includes(kid)) return 'revoked'
  return state === 'next' ? 'replaced' : 'removed'
}

function keyEvents(before: RingKey | undefined, { kid, alg, state, given, visible, custody }: RingKey): KeyEvent[] {
  const made = custody === null ? (given ? 'given' : 'created here') : `${custody.key} version ${custody.version}`
  const created: KeyEvent[] = before === undefined ? [{ name: 'created', kid, details: { alg, origin: made } }] : []
  const isSeen = visible !== null
  const wasSeen = before !== undefined && before.visible !== null
  const seen: KeyEvent[] = isSeen === wasSeen ? [] : [{ name: isSeen ? 'readBack' : 'missing', kid }]
  const changed: KeyEvent[] =
    before?.state === state || state === 'next' ? [] : [{ name: state === 'active' ? 'activated' : 'retired', kid }]
  return [...created, ...seen, ...changed]
}
