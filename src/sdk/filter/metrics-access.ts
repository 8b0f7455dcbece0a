/** The metrics of this gateway, with those of all its workers. */
export interface MetricsAccess {
  write(options: MetricsOptions): Promise<WrittenMetrics>
}

export interface MetricsOptions {
  /** The header `Accept` of the scraper. */
  readonly accept?: string | undefined
  /** Only metrics of these names; all if there are none. */
  readonly names?: readonly string[]
}

export interface WrittenMetrics {
  readonly contentType: string
  readonly body: string
}
