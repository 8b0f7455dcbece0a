import type { AuditEntry } from '#domain/audit.ts'
import { isSecretAttribute } from '#identity/attributes.ts'
import { newId } from '#kernel/ids.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { AuditStore } from '#storage/audit/audit-store.ts'

/** When and where a change was made; `subject` is the login of the user who was changed. */
export type AuditPlace = Pick<AuditEntry, 'time' | 'subject' | 'target'>

type RunFields = Pick<AuditEntry, 'workflow' | 'requestor' | 'caller' | 'requestId' | 'approval' | 'reason'>

/**
 * Collects what a run did, to be written in one go, except for what was written by the transaction that did it. Values of
 * attributes that are named like a secret are left out.
 */
export class AuditTrail {
  /** Yet to be written. */
  readonly rows: AuditEntry[] = []
  readonly #run: RunFields
  readonly #store: Pick<AuditStore, 'appendWithin'>
  readonly #written = new WeakSet<TargetChange>()
  #count = 0

  constructor(run: RunFields, store: Pick<AuditStore, 'appendWithin'>) {
    this.#run = run
    this.#store = store
  }

  /** How many changes there were. */
  get count(): number {
    return this.#count
  }

  add(place: AuditPlace, change: TargetChange): void {
    this.#count++
    if (!this.#written.has(change)) this.rows.push(this.#row(place, change))
  }

  /** Writes as part of the transaction, where it is one of the audit's own database. */
  async appendWithin(transaction: object, place: AuditPlace, changes: readonly TargetChange[]): Promise<void> {
    const rows = this.rowsOf(place, changes)
    if (!(await this.#store.appendWithin(transaction, rows))) return
    for (const change of changes) this.#written.add(change)
  }

  /** The rows of these changes, which are not added. */
  rowsOf(place: AuditPlace, changes: readonly TargetChange[]): AuditEntry[] {
    return changes.map((change) => this.#row(place, change))
  }

  #row({ time, subject, target }: AuditPlace, change: TargetChange): AuditEntry {
    const { action, attribute, value } = change
    const shown = value === undefined || isSecretAttribute(attribute) ? {} : { value }
    return { id: newId(), time, ...this.#run, subject, target, kind: change.subject, action, attribute, ...shown }
  }
}
