import type { ReportValues } from '#engine/reports/report-query.ts'
import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import type { Identity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { isJsonObject } from '#kernel/json.ts'
import { reportParameters } from '#sdk/report/report-statement.ts'

export interface ReferredReport {
  readonly name: string
  readonly values: ReportValues
}

const lifeMillis = 10 * 60_000
const maxLength = 4_000

/** Names for reports with their values, each for one user and for a while. Any gateway of the installation reads them. */
export class ReportReferences {
  readonly #secrets: Pick<SecretBox, 'seal' | 'open'>
  readonly #clock: Clock

  constructor(secrets: Pick<SecretBox, 'seal' | 'open'>, clock: Clock) {
    this.#secrets = secrets
    this.#clock = clock
  }

  async make({ name, values }: ReferredReport, user: Identity): Promise<string> {
    const until = this.#clock().getTime() + lifeMillis
    return await this.#secrets.seal({ name, values: { ...values }, until }, user)
  }

  /** Undefined for one that is too old, another's, or none. */
  async read(reference: string, user: Identity): Promise<ReferredReport | undefined> {
    if (reference.length > maxLength) return undefined
    const opened = await this.#secrets.open(reference, user).catch(() => undefined)
    const { name, values, until } = opened ?? {}
    if (typeof name !== 'string' || typeof until !== 'number' || !isJsonObject(values)) return undefined
    if (until < this.#clock().getTime()) return undefined
    const given = reportParameters.flatMap((parameter) => {
      const value = values[parameter]
      return typeof value === 'string' ? [[parameter, value] as const] : []
    })
    return { name, values: Object.fromEntries(given) }
  }
}
