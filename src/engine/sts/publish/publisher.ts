import type { IssuerFile } from '#engine/sts/publish/issuer-files.ts'

/** A place that documents are put to. */
export interface Publisher {
  /** Puts the files in their order, and says so only when all of them can be read there. Ends with the signal. */
  put(files: readonly IssuerFile[], signal: AbortSignal): Promise<void>
}
