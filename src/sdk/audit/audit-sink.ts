import { resolve } from 'node:path'
import type { AuditLink } from '#kernel/audit-link.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { Closable } from '#kernel/scope.ts'
import type { OwnPlaces } from '#sdk/host/own-file.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** A record of the audit for sinks: several rows that were written together. */
export interface SinkRecord {
  readonly link: AuditLink
  /** One JSON object per row, as in `gatehouse audit export`. */
  readonly lines: readonly string[]
  readonly time: Date
}

/** Whether the receiver accepted the records. */
export type SinkOutcome =
  | { readonly kind: 'accepted' }
  /** Send the same records again later. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMillis?: number | undefined }

/** A receiver of a copy of the audit. */
export interface AuditSink extends Closable {
  /**
   * How long a receiver may still lose accepted records. The sink's position moves past records only after that
   * time without a loss; 0 if `accepted` means that they are stored.
   */
  readonly settleMillis: number
  /** Resolves when the receiver has all records in order, or may lack some. Does not throw. */
  send(records: readonly SinkRecord[], signal: AbortSignal): Promise<SinkOutcome>
  /** Whether the receiver disconnected since the last call, so that unsettled records must be sent again. */
  hasLost?(): boolean
  /** Why records can't be stored now, as far as a look shows that without sending any. Changes nothing. Does not throw. */
  problem?(): Promise<string | undefined>
}

/** Relative file names are below the data folder. */
interface AuditSinkHost extends OwnPlaces {
  /** The name of the YAML object. */
  readonly name: string
}

/** A sink whose parameters are checked. */
export type PreparedAuditSink = Prepared<AuditSink, AuditSinkHost>
/** A kind of audit sink, as the catalog lists it. */
export type AuditSinkModule = Module<AuditSink, AuditSinkHost>

/** `create` opens nothing: `send` reports an unreachable receiver, and is retried. */
export const defineAuditSink = <C>(definition: ModuleDefinition<C, AuditSink, AuditSinkHost>): AuditSinkModule =>
  defineModule(definition)

/** The text of the PEM file that the parameter names, relative to the configuration folder; undefined with an issue. */
export function readAuthority(
  file: string | undefined,
  path: Path,
  issues: Issues,
  { folder, readFile }: ParseContext,
): string | undefined {
  if (file === undefined || readFile === undefined) return undefined
  try {
    const text = readFile(resolve(folder, file))
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text
    issues.error(path, `${file} holds no certificate in PEM form`)
  } catch (error) {
    issues.error(path, error instanceof Error ? error.message : String(error))
  }
  return undefined
}
