import type { AuditStore } from '#audit/store/audit-store.ts'
import { isSecretAttribute } from '#identity/attributes.ts'
import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { AttributeWrite } from '#sdk/flow/flow.ts'
import type { TargetChange } from '#sdk/target/target.ts'

/** When and where a change was made; `subject` is the login of the user who was changed. */
export type AuditPlace = Pick<AuditEntry, 'time' | 'subject' | 'target'>

type RunFields = Pick<AuditEntry, 'workflow' | 'requestor' | 'caller' | 'requestId' | 'approval' | 'reason'>

/**
 * Collects the audit entries of a run, to be written with its commit. A target in the audit's own database writes them
 * in the transaction of its changes instead. Values of secret attributes are left out.
 */
export class AuditTrail {
  /** Not written yet. */
  readonly rows: AuditEntry[] = []
  readonly #run: RunFields
  readonly #store: Pick<AuditStore, 'appendWithin'>
  readonly #written = new Map<string, AttributeWrite>()
  #count = 0

  constructor(run: RunFields, store: Pick<AuditStore, 'appendWithin'>) {
    this.#run = run
    this.#store = store
  }

  /** The number of changes. */
  get count(): number {
    return this.#count
  }

  /** The attributes that were changed, each once. */
  get written(): readonly AttributeWrite[] {
    return [...this.#written.values()]
  }

  /** Counts a change. Collects its entry unless that is written already. */
  add(place: AuditPlace, change: TargetChange): void {
    this.#count++
    const { target } = place
    const { subject, attribute } = change
    if (subject === 'attribute') this.#written.set(`${target} ${attribute}`, { target, attribute })
    if (change.audited !== true) this.rows.push(this.#row(place, change))
  }

  /** Writes the entries in the transaction; false if that isn't one of the audit's own database. */
  appendWithin(transaction: object, place: AuditPlace, changes: readonly TargetChange[]): Promise<boolean> {
    return this.#store.appendWithin(transaction, this.rowsOf(place, changes))
  }

  /** The entries of these changes, without adding them. */
  rowsOf(place: AuditPlace, changes: readonly TargetChange[]): AuditEntry[] {
    return changes.map((change) => this.#row(place, change))
  }

  #row({ time, subject, target }: AuditPlace, change: TargetChange): AuditEntry {
    const { action, attribute, value } = change
    // The value of an entry is its name, also that of a Kubernetes Secret.
    const isSecret = change.subject !== 'entry' && isSecretAttribute(attribute)
    const shown = value === undefined || isSecret ? {} : { value }
    return { id: newId(), time, ...this.#run, subject, target, kind: change.subject, action, attribute, ...shown }
  }
}
