import { isSecretAttribute } from '#identity/secret-attribute.ts'
import { newId } from '#kernel/ids.ts'
import type { TargetChange } from '#sdk/target.ts'
import type { AuditRow } from '#storage/audit-store.ts'

type RunFields = Pick<AuditRow, 'workflow' | 'requestor' | 'requestId'>

/** Collects what a run did, to be written in one go. Values of attributes that are named like a secret are left out. */
export class AuditTrail {
  readonly rows: AuditRow[] = []
  readonly #run: RunFields

  constructor(run: RunFields) {
    this.#run = run
  }

  /** `subject` is the login of the user who was changed. */
  add(time: Date, subject: string, target: string, change: TargetChange): void {
    const { action, attribute, value } = change
    const shown = value === undefined || isSecretAttribute(attribute) ? {} : { value }
    this.rows.push({
      id: newId(),
      time,
      ...this.#run,
      subject,
      target,
      kind: change.subject,
      action,
      attribute,
      ...shown,
    })
  }
}
