export interface ReportMeter {
  /** `outcome`: `done`, `refused` where too many run already, or `failed`, also for an answer that was cut off. */
  ran(report: string, format: string, outcome: string, millis: number): void
}
